// findings_io.c - findings about disks and networks that the run waits for.
#include "report/findings.h"

static const double disk_wait_share = 0.2; // share of the run in which a task waited for a disk
static const double disk_busy_share = 0.8;
static const double disk_iowait_share = 0.1; // share of all processor time
// payload as a share of a link's rate
static const double link_share_least = 0.85, link_share_most = 1;
static const double plateau_width = 0.95; // minimum share of the peak
static const double plateau_share = 0.25; // minimum share of the buckets

// ---------------------------------------------------------------- disks

static const struct report_line *busiest_disk(const struct report *r, struct str host)
{
    const struct report_measure *m = &r->measures[REPORT_DISK_BUSY];
    const struct report_line *top = NULL;
    for (size_t i = 0; i < m->count; i++)
        if (str_eq(m->lines[i].host, host) && !isnan(m->lines[i].mean) &&
            (!top || m->lines[i].mean > top->mean))
            top = &m->lines[i];
    return top;
}

void find_slow_disk(struct report *r)
{
    const struct report_measure *m = &r->measures[REPORT_PRESSURE_IO];
    double worst = 0;
    struct str host = {0};
    size_t nodes = 0;
    for (size_t i = 0; i < m->count && finding_is_long_enough(r); i++) {
        double share = m->lines[i].total / report_seconds(r);
        if (line_values(r, &m->lines[i]) < FINDING_LEAST_BUCKETS || !(share >= disk_wait_share))
            continue;
        nodes++;
        if (share > worst) {
            worst = share;
            host = m->lines[i].host;
        }
    }
    if (!nodes)
        return;
    const struct report_line *disk = busiest_disk(r, host),
                             *cpus = measure_line(r, REPORT_CPU_COUNT, host);
    double iowait = measure_total(r, REPORT_CPU_IOWAIT, host) /
                    (report_seconds(r) * (cpus ? cpus->mean : (double)NAN));
    bool confirmed = (disk && disk->mean >= disk_busy_share) || iowait >= disk_iowait_share;
    struct report_finding *f =
        finding_add(r, "disk", confirmed ? REPORT_SURE : REPORT_LIKELY, fmin(worst, 1));
    if (!f)
        return;
    f->title =
        finding_text(r, "tasks waited for a disk %.0f %% of the time%s%.*s", worst * 100,
                     r->node_count > 1 ? " on " : "", STR_ARG(r->node_count > 1 ? host : STR("")));
    double read = measure_total(r, REPORT_DISK_READ, host),
           written = measure_total(r, REPORT_DISK_WRITTEN, host);
    struct buf b = {0};
    if (disk)
        buf_printf(&b, "%.*s was busy %.0f %% of the time", STR_ARG(disk->part), disk->mean * 100);
    if (!isnan(read) && !isnan(written))
        buf_printf(&b, "%s%.*s read, %.*s written", b.size ? "; " : "",
                   STR_ARG(finding_bytes(r, read)), STR_ARG(finding_bytes(r, written)));
    if (nodes > 1)
        buf_printf(&b, "%s%zu nodes in all", b.size ? "; " : "", nodes);
    f->evidence =
        b.size ? finding_text(r, "%.*s", STR_ARG(buf_str(&b))) : STR("pressure of the kernel");
    buf_free(&b);
    f->advice = read > written
                    ? STR("Read less, or earlier: larger files in place of many small ones, a copy "
                          "on a local disk or in memory, more files read ahead.")
                    : STR("Write less, or later: fewer and larger checkpoints, written by a thread "
                          "beside the work, to a local disk first.");
    f->value = worst;
    f->unit = "ratio";
    f->hosts = host;
    f->m =
        finding_text(r, "none:0all-diff:pressure_io_some_seconds_total{host=%.*s}", STR_ARG(host));
}

// ---------------------------------------------------------------- networks

// Returns the rate of the usual kind of link that `peak` bytes a second would fill; 0: none.
static double filled_link(double peak)
{
    static const double gbits[] = {1, 2.5, 10, 25, 40, 50, 100, 200, 400};
    for (size_t i = 0; i < sizeof gbits / sizeof *gbits; i++) {
        double share = peak * 8 / (gbits[i] * 1e9);
        if (share >= link_share_least && share <= link_share_most)
            return gbits[i];
    }
    return 0;
}

static double plateau_of(const struct report *r, const struct report_line *l)
{
    size_t values = 0, high = 0;
    for (size_t i = 0; i < r->bucket_count; i++) {
        if (isnan(l->buckets[i]))
            continue;
        values++;
        high += l->buckets[i] >= plateau_width * l->peak;
    }
    return values >= FINDING_LEAST_BUCKETS ? (double)high / (double)values : 0;
}

void find_full_network(struct report *r)
{
    static const enum report_measure_id ids[] = {REPORT_NETWORK_IN, REPORT_NETWORK_OUT};
    const struct report_line *worst = NULL;
    double worst_share = 0;
    bool receives = false;
    for (size_t k = 0; k < 2 && finding_is_long_enough(r); k++)
        for (size_t i = 0; i < r->measures[ids[k]].count; i++) {
            const struct report_line *l = &r->measures[ids[k]].lines[i];
            double share = filled_link(l->peak) > 0 ? plateau_of(r, l) : 0;
            if (share < plateau_share || share <= worst_share)
                continue;
            worst = l;
            worst_share = share;
            receives = ids[k] == REPORT_NETWORK_IN;
        }
    struct report_finding *f =
        worst ? finding_add(r, "network", REPORT_POSSIBLE, worst_share) : NULL;
    if (!f)
        return;
    f->title =
        finding_text(r, "%.*s of %.*s %s %.*s/s %.0f %% of the time, the rate of a link",
                     STR_ARG(worst->part), STR_ARG(worst->host), receives ? "received" : "sent",
                     STR_ARG(finding_bytes(r, worst->peak)), worst_share * 100);
    f->evidence = finding_text(r, "%.2f Gbit/s of a link of %g Gbit/s", worst->peak * 8 / 1e9,
                               filled_link(worst->peak));
    f->advice = STR("Send less, or over a faster network: see that programs use the fast "
                    "interface (NCCL_SOCKET_IFNAME, UCX_NET_DEVICES), compress, or overlap "
                    "communication and work.");
    f->value = worst_share;
    f->unit = "ratio";
    f->hosts = worst->host;
    f->m = finding_text(r, "none:%llds-avg:rate:%s{host=%.*s,interface=%.*s}",
                        (long long)(r->bucket_ns / 1000000000),
                        receives ? "network_receive_bytes_total" : "network_transmit_bytes_total",
                        STR_ARG(worst->host), STR_ARG(worst->part));
}
