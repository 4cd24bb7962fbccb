// handlers.h - the handlers of the routes of sonde's own interface (aggregator/routes.c).
#ifndef SONDE_FACES_NATIVE_HANDLERS_H
#define SONDE_FACES_NATIVE_HANDLERS_H

#include "faces/service.h"

// data.c
void native_nodes(struct service *service, struct request *r, struct answer *a);
void native_metrics(struct service *service, struct request *r, struct answer *a);
void native_series(struct service *service, struct request *r, struct answer *a);
void native_query(struct service *service, struct request *r, struct answer *a);
void native_spans(struct service *service, struct request *r, struct answer *a);
void native_annotations(struct service *service, struct request *r, struct answer *a);
void native_stream(struct service *service, struct request *r, struct answer *a);
// Reads the parameters start and end as times of the recording; without them, all time. -EINVAL.
int native_times(const struct service *service, const struct request *r, int64_t *from_ns,
                 int64_t *to_ns, struct error *e);
// findings.c
void native_findings(struct service *service, struct request *r, struct answer *a);
// In question.c: parses the queries of a body, with times of the recording. -EINVAL, -E2BIG.
int native_query_parse(const struct service *service, struct request *r, struct query_request *out,
                       struct error *e);
// Parses the queries, opens their data, and asks the nodes. Returns false with the error in the
// answer.
bool native_query_open(struct service *service, struct request *r, struct query_request *out,
                       struct reading *d, struct answer *a);
// Runs the i-th query like reading_run.
int native_run(struct reading *d, const struct query_request *request, size_t i,
               struct arena *arena, struct query_result *out, struct error *e);
// Returns the job of the data; the first one if there are several.
struct str native_job(const struct reading *d);
// tags.c
void native_tags(struct service *service, struct request *r, struct answer *a);
// arrow.c
#define NATIVE_ARROW_TYPE "application/vnd.apache.arrow.stream"
void native_query_arrow(struct service *service, struct request *r, struct answer *a);
// binary.c
void native_query_binary(struct service *service, struct request *r, struct answer *a);
// openapi.c
void native_openapi(struct service *service, struct request *r, struct answer *a);
// openmetrics.c
void openmetrics_latest(struct service *service, struct request *r, struct answer *a);
// dump.c
void native_dump(struct service *service, struct request *r, struct answer *a);
// collectors.c
void native_collectors(struct service *service, struct request *r, struct answer *a);
// reboot.c
void native_reboot(struct service *service, struct request *r, struct answer *a);
void dragon_reboot(struct service *service, struct request *r, struct answer *a);
// session.c
void native_session(struct service *service, struct request *r, struct answer *a);
// status.c, proof.c
void native_status(struct service *service, struct request *r, struct answer *a);
void native_proof(struct service *service, struct request *r, struct answer *a);
void native_health(struct service *service, struct request *r, struct answer *a);

#endif
