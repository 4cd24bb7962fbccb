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
    enum role role;  // of the key; ROLE_NOBODY: there is no key
    char key[SESSION_ID_SIZE];
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

// Finds the session of this client, and notes that it is used. Call it with the lock held.
static struct session *find(struct sessions *s, struct str id, const struct peer *peer)
{
    static const int64_t idle_ns = (int64_t)SESSION_IDLE_S * NS_PER_S;
    struct session *found = NULL;
    if (id.size != SESSION_ID_SIZE)
        return NULL;
    int64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct session *session = &s->all[i];
        bool live = session->used_ns && now_ns - session->used_ns < idle_ns;
        if (memeql_sec(session->id, id.data, SESSION_ID_SIZE) && live &&
            peer_equal(&session->peer, peer))
            found = session;
    }
    if (found)
        found->used_ns = now_ns;
    return found;
}

bool sessions_check(struct sessions *s, struct str id, const struct peer *peer)
{
    if (!s)
        return false;
    pthread_mutex_lock(&s->lock);
    bool found = find(s, id, peer) != NULL;
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool sessions_raise(struct sessions *s, struct str id, const struct peer *peer, enum role role,
                    char key[SESSION_ID_SIZE + 1])
{
    char made[TOKEN_TEXT_MAX];
    if (!s || token_make(made, NULL) != 0)
        return false;
    pthread_mutex_lock(&s->lock);
    struct session *session = find(s, id, peer);
    if (session) {
        session->role = role;
        memcpy(session->key, made, SESSION_ID_SIZE);
        memcpy(key, made, SESSION_ID_SIZE + 1);
    }
    pthread_mutex_unlock(&s->lock);
    explicit_bzero(made, sizeof made);
    return session != NULL;
}

enum role sessions_role(struct sessions *s, struct str id, const struct peer *peer, struct str key)
{
    enum role role = ROLE_NOBODY;
    if (!s || key.size != SESSION_ID_SIZE)
        return role;
    pthread_mutex_lock(&s->lock);
    const struct session *session = find(s, id, peer);
    if (session && session->role && memeql_sec(session->key, key.data, SESSION_ID_SIZE))
        role = session->role;
    pthread_mutex_unlock(&s->lock);
    return role;
}
