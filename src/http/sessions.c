#include "http/sessions.h"

#include "base/clock.h"
#include "http/tokens.h"

#include <nettle/memops.h>
#include <pthread.h>
#include <stdlib.h>

struct session {
    char id[SESSION_ID_SIZE];
    struct peer peer;
    int64_t used_ns; // 0: the entry is free
};

struct sessions {
    pthread_mutex_t lock;
    struct session all[SESSIONS_MAX];
};

_Static_assert((int)SESSION_ID_SIZE == (int)TOKEN_MADE, "ids are made as tokens are");

struct sessions *sessions_create(void)
{
    struct sessions *s = calloc(1, sizeof *s);
    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

void sessions_destroy(struct sessions *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    explicit_bzero(s->all, sizeof s->all);
    free(s);
}

bool sessions_open(struct sessions *s, const struct peer *peer, char id[SESSION_ID_SIZE + 1])
{
    char made[TOKEN_TEXT_MAX];
    if (token_make(made, NULL) != 0)
        return false;
    memcpy(id, made, SESSION_ID_SIZE + 1);
    pthread_mutex_lock(&s->lock);
    struct session *oldest = &s->all[0];
    for (size_t i = 1; i < SESSIONS_MAX; i++)
        if (s->all[i].used_ns < oldest->used_ns)
            oldest = &s->all[i];
    *oldest = (struct session){.peer = *peer, .used_ns = clock_monotonic_ns()};
    memcpy(oldest->id, id, SESSION_ID_SIZE);
    pthread_mutex_unlock(&s->lock);
    return true;
}

bool sessions_check(struct sessions *s, struct str id, const struct peer *peer)
{
    static const int64_t idle_ns = (int64_t)SESSION_IDLE_S * NS_PER_S;
    if (!s || id.size != SESSION_ID_SIZE)
        return false;
    int64_t now_ns = clock_monotonic_ns();
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct session *session = &s->all[i];
        bool live = session->used_ns && now_ns - session->used_ns < idle_ns;
        if (!memeql_sec(session->id, id.data, SESSION_ID_SIZE) || !live ||
            !peer_equal(&session->peer, peer))
            continue;
        session->used_ns = now_ns;
        found = true;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}
