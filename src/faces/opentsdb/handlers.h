// handlers.h - the handlers of the routes of OpenTSDB's interface (aggregator/routes.c).
#ifndef SONDE_FACES_OPENTSDB_HANDLERS_H
#define SONDE_FACES_OPENTSDB_HANDLERS_H

#include "faces/service.h"

// query.c
void opentsdb_query(struct service *service, struct request *r, struct answer *a);
// annotation.c
void opentsdb_annotation(struct service *service, struct request *r, struct answer *a);
void opentsdb_annotation_bulk(struct service *service, struct request *r, struct answer *a);
void opentsdb_annotations(struct service *service, struct request *r, struct answer *a);
// exp.c
void opentsdb_exp(struct service *service, struct request *r, struct answer *a);
// gexp.c
void opentsdb_gexp(struct service *service, struct request *r, struct answer *a);
// lookup.c
void opentsdb_lookup(struct service *service, struct request *r, struct answer *a);
// last.c
void opentsdb_last(struct service *service, struct request *r, struct answer *a);
// put.c
void opentsdb_put(struct service *service, struct request *r, struct answer *a);
void dragon_metrics(struct service *service, struct request *r, struct answer *a);
void dragon_nothing(struct service *service, struct request *r, struct answer *a);
void dragon_ready(struct service *service, struct request *r, struct answer *a);
// admin.c
void opentsdb_stats(struct service *service, struct request *r, struct answer *a);
void opentsdb_drop_caches(struct service *service, struct request *r, struct answer *a);
void opentsdb_assign(struct service *service, struct request *r, struct answer *a);
void dragon_token(struct service *service, struct request *r, struct answer *a);
void dragon_shutdown(struct service *service, struct request *r, struct answer *a);
// metadata.c
void opentsdb_suggest(struct service *service, struct request *r, struct answer *a);
void opentsdb_aggregators(struct service *service, struct request *r, struct answer *a);
void opentsdb_configuration(struct service *service, struct request *r, struct answer *a);
void opentsdb_filters(struct service *service, struct request *r, struct answer *a);
void opentsdb_version(struct service *service, struct request *r, struct answer *a);

#endif
