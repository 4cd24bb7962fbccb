// node.h - `sonde node`, which runs on each node but the first: it runs the agent and the relay
// there until the launcher ends it.
//
// The launcher starts it through srun or ssh. It reads its setup from standard input, so that
// secrets (token, key) appear on no command line:
//
//   sonde-node 2            the version of this protocol
//   job 4711
//   folder /tmp/sonde-1000/4711    the run folder, of the same path on every node
//   token 0123…             goes into FOLDER/token
//   key 0123…               of the aggregator's hub, in hexadecimal; goes into FOLDER/key
//   dragon-port 4243        the relay's --tsdb-server-port
//   transport auto          how data travel to the aggregator: the relay's --transport
//   name n2                 the name of this node for the launcher and the aggregator
//   name-in SLURMD_NODENAME  this environment variable has the name: several nodes have the same
//                           input, because one srun started them. Each answers "here"
//   record /home/u/runs/4711       the recording's folder at the end; without it, none is kept
//   command mpirun ./a.out         for the recording
//   agent --rate=0.5        an argument for the agent; any number
//   beat-ms 5000            the interval between heartbeats, in both directions
//   orphan-ms 120000        the node ends itself if the launcher is silent for longer (a partition)
//   stop-ms 10000           the time that the agent may take to end
//   hosts n1,n2,n3          goes into FOLDER/hostfile; may be repeated later
//   url URL                 the job's HTTP address, for job.json; may come later, and be repeated
//   go                      the end of the setup
//   children n4,n5          nodes that connect to this one, whose relay merges their answers; may
//                           be repeated, always with all of them
//   parent ADDRESS PORT ADDRESS PORT
//                           the listeners that this node's relay connects to: its parent, then a
//                           substitute. Starts the relay; may come before or after "go", and be
//                           repeated
//   beat                    … from time to time
//   finish MARK             the end of the job, or of this node's part, is near: the agent closes
//                           its file. If MARK is in the recording's folder, all nodes share that
//                           folder: the file is kept there, and the node ends. Otherwise the relay
//                           goes on answering from the closed file until one of:
//   drop                    the first node has a copy of the file: it is not kept here
//                           or the end of the input: the file is kept here
//   collector NAME …        at any time: for the agent, and for later ones (wire/collector_line.h)
//   end                     as the end of the input
//   @n2 LINE                LINE is for the node n2 alone
//
// It writes lines to its standard output, each with NODE_PREFIX in front:
//
//   here NAME               after "name-in": its process runs
//   ready HOST              the agent serves; HOST is the name in its file and its series
//   error TEXT              the node cannot work; it ends
//   beat
//   hub PORT                the relay accepts children at this port; 0: it does not at the moment
//   agent TEXT              the agent has ended, and was started again or given up
//   relay TEXT              the same of the relay
//   closed                  after "finish": the file is closed, and exists only on this node
//   kept PATH               at the end: the path of the recording
//   stays PATH: TEXT        at the end: the recording could not be moved, and is still at PATH
//   ended                   its last line
//
// It ends all its processes when its standard input is closed, on SIGTERM, SIGINT and SIGHUP, and
// when the launcher has been silent for too long. It ignores lines that it does not know.
#ifndef SONDE_LAUNCH_NODE_H
#define SONDE_LAUNCH_NODE_H

#include "base/error.h"

#define NODE_PREFIX "sonde-node "

enum {
    NODE_TOLD_MS = 30000, // time for the setup to arrive
};

// Returns the exit code: 0 if the launcher ended it, 1 with e set if it could not work.
int node_run(struct error *e);

#endif
