// node.h - what `sonde node` does on a node other than the first: runs the agent and the relay
// there, for as long as the launcher wants it.
//
// The launcher starts it through srun or ssh. What it has to know comes on its standard input, so
// that nothing of it (the token) is on a command line:
//
//   sonde-node 1            the version of these lines
//   job 4711
//   folder /tmp/sonde-1000/4711    the run folder, of the same path on every node
//   token 0123…             goes into FOLDER/token
//   key 0123…               of the aggregator's hub, in hexadecimal; goes into FOLDER/key
//   dragon-port 4243        the relay's --tsdb-server-port
//   transport auto          how data travel to the aggregator: the relay's --transport
//   name n2                 how the launcher calls this node, and so does the aggregator
//   record /home/u/runs/4711       where the recording goes at the end; none is kept without it
//   command mpirun ./a.out         for the recording
//   agent --rate=0.5        an argument for the agent; any number
//   beat-ms 5000            how often each side shows the other that it lives
//   orphan-ms 120000        how long the launcher may be silent (a partition) before it is taken for dead
//   stop-ms 10000           how long the agent may take to end
//   hosts n1,n2,n3          goes into FOLDER/hostfile; may come again later
//   url URL                 where the job answers over HTTP, for job.json; may come later, and again
//   go                      that was all
//   children n4,n5          these nodes connect to this one, whose relay merges what they answer; may come again, with all of them
//   parent ADDRESS PORT ADDRESS PORT   who asks this node listens there: a relay, then who can stand in for it; the relay is started; may come before or after "go", and again
//   beat                    … from time to time
//   finish MARK             the end is near, of the job or of this node's part in it: the agent closes its file. Where MARK is in the recording's folder, all nodes share that: the file is kept there, and the
//                           end follows. Elsewhere the relay goes on answering from the closed file until one of
//   drop                    the file has been brought to the first node: it is not kept here
//                           or the end of these lines, which means: keep it here
//   collector NAME …        at any time: for the agent, and for each that is started after it (wire/collector_line.h)
//
// and it says on its standard output, each line with NODE_PREFIX in front:
//
//   ready HOST              the agent serves; HOST is the name that its file and its series carry
//   error TEXT              it cannot; the end follows
//   beat
//   hub PORT                the relay takes in the children there; 0: it does not at the moment
//   agent TEXT              the agent has ended and was started again, or not any more
//   relay TEXT              the same of the relay
//   closed                  after "finish": the file is closed, and is here alone
//   kept PATH               at the end: the recording is here
//   stays PATH: TEXT        at the end: it could not be brought there
//
// It ends everything on the node when its standard input is closed, on SIGTERM, SIGINT and SIGHUP,
// and when the launcher has been silent for too long. Lines that it does not know are left alone.
#ifndef SONDE_LAUNCH_NODE_H
#define SONDE_LAUNCH_NODE_H

#include "base/error.h"

#define NODE_PREFIX "sonde-node "

enum {
    NODE_TOLD_MS = 30000, // how long what it has to know may take to come
};

// Returns the exit code: 0 when it was asked to end, 1 with e set when it could not work.
int node_run(struct error *e);

#endif
