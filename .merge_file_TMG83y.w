// options.def - every option, 
once: flags, 
environment, 
configuration keys, 
help, 
man pages and completion come from here.
//
// OPTION(ID, 
name, 
letter, 
argument, 
TYPE, 
least, 
most, 
choices, 
initial, 
environment, 
key, 
dragon_key, 
commands, 
help)
//   name, 
letter  --name and -letter (0 = none); name "" = only a configuration key
//   argument      its name in help; "" for flags
//   TYPE          FLAG, 
INT, 
SECONDS, 
SIZE (bytes; K, 
M, 
G, 
T are powers of 1024), 
TEXT, 
PATH, 
CHOICE (of `choices`, 
separated by |)
//   least, 
most   range of INT, 
SECONDS, 
SIZE
//   initial       the default, 
written as a user would; "" = none
//   environment   variables that set it, 
the first that is set counts; "" = none
//   key           in the configuration file; dragon_key: the Dragon Telemetry Service's name for it; "" = none
//   commands      who takes it: ON(RUN) | 
ON(AGENT) …
//
// UNUSED_KEY(key, 
why): a key of Dragon's that is accepted in configuration files and does nothing here, 
with the word that is said.

OPTION(LEVEL, 
"telemetry-level", 
'l', 
"N", 
INT, 
0, 
4, 
"", 
"2", 
"SONDE_LEVEL", 
"telemetry_level", 
"", 
ON(RUN) | 
ON(AGENT) | 
ON(AGGREGATOR),
       "What is recorded: 0 nothing, 
1 what programs emit, 
2 also the node's metrics, 
3 also GPUs and other devices, 
4 also sonde's own and details.")
OPTION(CONFIG, 
"config", 
'c', 
"FILE", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_CONFIG DRAGON_TELEMETRY_CONFIG", 
"", 
"",
       ON(RUN) | 
ON(QUERY) | 
ON(DETECT) | 
ON(STATUS) | 
ON(INSPECT) | 
ON(PUT) | 
ON(DOCTOR) | 
ON(AGENT) | 
ON(AGGREGATOR) | 
ON(REPLAY),
       "Read defaults for these options from a YAML file. What flags and the environment say goes before it.")
OPTION(PORT, 
"port", 
'p', 
"N", 
INT, 
1, 
65535, 
"", 
"4242", 
"SONDE_PORT", 
"port", 
"aggregator_port", 
ON(RUN) | 
ON(AGGREGATOR) | 
ON(REPLAY) | 
ON(DOCTOR),
       "Port of the HTTP server; the next free one if it is taken.")
OPTION(LISTEN, 
"listen", 
0, 
"ADDRESS", 
TEXT, 
0, 
0, 
"", 
"127.0.0.1", 
"SONDE_LISTEN", 
"listen", 
"", 
ON(RUN) | 
ON(AGGREGATOR) | 
ON(REPLAY),
       "Address of the HTTP server. Any other than loopback lets other machines ask, 
with the token.")
OPTION(TLS_CERT, 
"tls-cert", 
0, 
"FILE", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_TLS_CERT", 
"tls_cert", 
"", 
ON(RUN) | 
ON(AGGREGATOR) | 
ON(REPLAY),
       "Answer over HTTPS with this certificate (PEM); with --tls-key.")
OPTION(TLS_KEY, 
"tls-key", 
0, 
"FILE", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_TLS_KEY", 
"tls_key", 
"", 
ON(RUN) | 
ON(AGGREGATOR) | 
ON(REPLAY),
       "The certificate's private key (PEM), 
which nobody else may be able to read.")
OPTION(CORS_ORIGIN, 
"cors-origin", 
0, 
"LIST", 
TEXT, 
0, 
0, 
"", 
"", 
"SONDE_CORS_ORIGIN", 
"cors_origin", 
"", 
ON(AGGREGATOR) | 
ON(REPLAY),
       "Let pages of these origins (https://host:port, 
separated by commas) read the answers.")
OPTION(RECORD, 
"record", 
'r', 
"DIR", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_RECORD", 
"record", 
"", 
ON(RUN),
       "Keep the recording in DIR, 
as HOST.sonde with run.json beside it, 
instead of among the newest runs.")
OPTION(NO_RECORD, 
"no-record", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"SONDE_NO_RECORD", 
"no_record", 
"delete_tmdb", 
ON(RUN),
       "Keep no recording.")
OPTION(RATE, 
"rate", 
0, 
"SECONDS", 
SECONDS, 
0.01, 
3600, 
"", 
"0.5", 
"SONDE_RATE", 
"rate", 
"collector_rate", 
ON(RUN) | 
ON(AGENT),
       "Seconds between two samples of the node's metrics.")
OPTION(WINDOW, 
"window", 
0, 
"SECONDS", 
SECONDS, 
0, 
1e9, 
"", 
"0", 
"SONDE_WINDOW", 
"window", 
"default_tmdb_window", 
ON(RUN) | 
ON(AGENT),
       "Keep only the last so many seconds; 0 keeps all.")
OPTION(SIZE_LIMIT, 
"size-limit", 
0, 
"SIZE", 
SIZE, 
1048576, 
1e15, 
"", 
"1G", 
"SONDE_SIZE_LIMIT", 
"size_limit", 
"", 
ON(RUN) | 
ON(AGENT),
       "Most bytes of a node's file; the oldest data go first.")
OPTION(UDP_PORT, 
"udp-port", 
0, 
"N", 
INT, 
0, 
65535, 
"", 
"0", 
"SONDE_UDP_PORT", 
"udp_port", 
"", 
ON(RUN) | 
ON(AGENT),
       "Take StatsD, 
OpenTSDB and Influx lines over UDP on this port of the loopback address; 0 does not.")
OPTION(RUN_DIR, 
"run-dir", 
0, 
"DIR", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_RUN_DIR", 
"run_dir", 
"default_tmdb_dir",
       ON(RUN) | 
ON(QUERY) | 
ON(DETECT) | 
ON(STATUS) | 
ON(INSPECT) | 
ON(PUT) | 
ON(REPLAY) | 
ON(DOCTOR),
       "Where running jobs keep their data, 
in sonde-UID/JOB; default: $TMPDIR, 
else /tmp.")
OPTION(RUNS, 
"runs", 
0, 
"DIR", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_RUNS", 
"runs", 
"", 
ON(RUN) | 
ON(QUERY) | 
ON(DETECT) | 
ON(INSPECT) | 
ON(REPLAY) | 
ON(DOCTOR),
       "Where recordings are kept (the newest 20 within 1 GiB); default: ~/.local/state/sonde/runs.")
OPTION(STOP_TIMEOUT, 
"stop-timeout", 
0, 
"SECONDS", 
SECONDS, 
0.1, 
3600, 
"", 
"10", 
"SONDE_STOP_TIMEOUT", 
"stop_timeout", 
"", 
ON(RUN),
       "How long the agent may take at the end to write what it has.")
OPTION(DRAGON_COMPATIBLE, 
"dragon-compatible", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"SONDE_DRAGON_COMPATIBLE", 
"dragon_compatible", 
"", 
ON(RUN) | 
ON(AGGREGATOR) | 
ON(REPLAY),
       "Over HTTP, 
treat a wildcard filter as grouping, 
as the Dragon Telemetry Service's dashboards expect it.")
OPTION(QUIET, 
"quiet", 
'q', 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"SONDE_QUIET", 
"quiet", 
"", 
ON(RUN), 
"Print no URL and no summary.")
OPTION(VERBOSE, 
"verbose", 
'v', 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"SONDE_VERBOSE", 
"verbose", 
"", 
ON(RUN) | 
ON(AGENT) | 
ON(AGGREGATOR) | 
ON(REPLAY),
       "Say more; print the URL also where standard error is no terminal.")

OPTION(START, 
"start", 
's', 
"TIME", 
TEXT, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(QUERY) | 
ON(DETECT),
       "From when: 5m-ago, 
2026/11/20-15:04:05 (local time), 
or seconds or milliseconds since the epoch.")
OPTION(END, 
"end", 
'e', 
"TIME", 
TEXT, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(QUERY) | 
ON(DETECT), 
"Until when.")
OPTION(BY, 
"by", 
0, 
"KEYS", 
TEXT, 
0, 
0, 
"", 
"host", 
"", 
"", 
"", 
ON(DETECT), 
"The tags that tell members apart, 
separated by commas: host,gpu or rank.")
OPTION(SPAN, 
"span", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(DETECT), 
"WHAT is the name of a span: the n-th of each member make a round.")
OPTION(EVERY, 
"every", 
0, 
"SECONDS", 
SECONDS, 
0.001, 
1e6, 
"", 
"10", 
"", 
"", 
"", 
ON(DETECT), 
"Length of a round, 
over which a metric is averaged.")
OPTION(SLOWDOWN, 
"slowdown", 
0, 
"FACTOR", 
SECONDS, 
1, 
1e6, 
"", 
"1.25", 
"", 
"", 
"", 
ON(DETECT), 
"How many times slower somebody is who is slow.")
OPTION(PERSISTENCE, 
"persistence", 
0, 
"N", 
INT, 
1, 
100000, 
"", 
"4", 
"", 
"", 
"", 
ON(DETECT), 
"For how many rounds running.")
OPTION(LESS_IS_WORSE, 
"less-is-worse", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(DETECT), 
"WHAT is a rate or a utilisation: who has less of it is slower.")
OPTION(NO_PEERS, 
"no-peers", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(DETECT), 
"Members are of different make: compare each with its own past only.")
OPTION(TIMEOUT, 
"timeout", 
0, 
"SECONDS", 
SECONDS, 
0.01, 
3600, 
"", 
"10", 
"", 
"", 
"", 
ON(PROBE), 
"How long a device may take.")
OPTION(EXCLUDE_FILE, 
"exclude-file", 
0, 
"FILE", 
PATH, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(DETECT),
       "Write the hosts of those who are slow or silent there, 
one a line, 
as `sbatch --exclude=./FILE` reads them; empty when there is nobody.")
OPTION(LIST, 
"list", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(QUERY),
       "Name the series instead, 
with kind, 
unit, 
points and times. An EXPRESSION is not given then.")
OPTION(JSON, 
"json", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(QUERY) | 
ON(DETECT) | 
ON(STATUS) | 
ON(INSPECT) | 
ON(METRICS), 
"Print JSON (query: OpenTSDB's answer, 
in milliseconds).")
OPTION(CSV, 
"csv", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(QUERY), 
"Print CSV (RFC 4180).")

OPTION(FOLDER, 
"folder", 
0, 
"DIR", 
PATH, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(AGENT), 
"The job's folder: yours, 
mode 0700; made when it is not there.")
OPTION(SOCKET, 
"socket", 
0, 
"PATH", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_SOCKET", 
"", 
"", 
ON(AGENT) | 
ON(PUT) | 
ON(AGGREGATOR),
       "The agent's Unix socket; the agent's default: DIR/agent.sock. With it the aggregator takes points over HTTP for the agent.")
OPTION(HOST, 
"host", 
0, 
"NAME", 
TEXT, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(AGENT) | 
ON(IMPORT),
       "The node's name; default: this host's, 
up to the first dot (import: the file's).")
OPTION(FORMAT, 
"format", 
0, 
"FORMAT", 
CHOICE, 
0, 
0, 
"wide-csv", 
"wide-csv", 
"", 
"", 
"", 
ON(IMPORT), 
"What the file is: wide-csv.")
OPTION(OUTPUT, 
"output", 
'o', 
"DIR", 
PATH, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(IMPORT), 
"The folder for the recording; made when it is not there.")
OPTION(JOB, 
"job", 
0, 
"ID", 
TEXT, 
0, 
0, 
"", 
"", 
"SONDE_JOB", 
"", 
"", 
ON(AGENT) | 
ON(AGGREGATOR) | 
ON(QUERY) | 
ON(DETECT) | 
ON(INSPECT) | 
ON(PUT) | 
ON(REPLAY),
       "The job that is meant.")
OPTION(TOKEN_FILE, 
"token-file", 
0, 
"FILE", 
PATH, 
0, 
0, 
"", 
"", 
"SONDE_TOKEN_FILE", 
"", 
"", 
ON(AGGREGATOR) | 
ON(REPLAY), 
"Take the token from the first line of FILE.")
OPTION(AS_IF_NOW, 
"as-if-now", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(REPLAY),
       "Shift all times, 
by whole minutes, 
so that the last point is of the last minute: \"the last 5 minutes\" of a dashboard show it.")
OPTION(CONTROL_FD, 
"control-fd", 
0, 
"N", 
INT, 
-1, 
1048576, 
"", 
"-1", 
"", 
"", 
"", 
ON(AGENT) | 
ON(AGGREGATOR),
       "Say \"ready\" on this descriptor and end when it is closed from the other side; -1 does not. For `sonde run`.")

OPTION(MAN, 
"man", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(HELP), 
"Print the man page sonde(1), 
in roff.")
OPTION(MARKDOWN, 
"markdown", 
0, 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
ON(HELP), 
"Print everything as Markdown (docs/cli.md).")
OPTION(HELP, 
"help", 
'h', 
"", 
FLAG, 
0, 
0, 
"", 
"", 
"", 
"", 
"", 
EVERY_COMMAND, 
"Explain this command.")

UNUSED_KEY("tsdb_server_port", 
"agents take points on their socket, 
not on a port")
UNUSED_KEY("remote_tunnel_node", 
"no tunnel is opened; ssh -NL reaches the port that is printed")
UNUSED_KEY("remote_tunnel_port", 
"no tunnel is opened; ssh -NL reaches the port that is printed")
UNUSED_KEY("dump_node", 
"the recording is kept on this node; --record DIR says where")
UNUSED_KEY("dump_dir", 
"the recording is kept at the end; --record DIR says where")
UNUSED_KEY("auth_key", 
"every job makes a token of its own, 
kept in SONDE_TOKEN_FILE")
