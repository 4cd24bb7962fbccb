// ended_line.h - the line of text with which the launcher tells the agent that the command has
// ended, before it asks the agent to end:
//
//   ended PID MICROSECONDS
//
// MICROSECONDS is the processor time of the command and of all its children that were waited for.
// When the agent takes its last sample, the kernel has forgotten the command.
#ifndef SONDE_WIRE_ENDED_LINE_H
#define SONDE_WIRE_ENDED_LINE_H

#define ENDED_VERB "ended"

#endif
