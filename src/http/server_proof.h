// server_proof.h - a server proves that it knows a token, before a client sends it the token.
//
//   client                                          server
//     ── GET /sonde/v1/proof?nonce=NONCE ──────────▶
//     ◀── ADDRESS, PROOF, PROOF, … (a line each) ───
//     ── the same connection: Authorization: …  ───▶
//
//   ADDRESS   the server's end of this connection, "127.0.0.1:4242"
//   PROOF     HMAC-SHA-256(token, label, NONCE, ADDRESS), for each token
//
// When a server has died, a program of another user can take its port. This program does not know
// the token, so it cannot make a proof. If it forwards the request to the real server, the proof
// contains the real server's address instead of the address that the client has connected to. The
// client chooses the nonce, so an old proof is worthless. NONCE and PROOF are hexadecimal.
#ifndef SONDE_HTTP_SERVER_PROOF_H
#define SONDE_HTTP_SERVER_PROOF_H

#include "base/str.h"

#include <stdbool.h>
#include <sys/socket.h>

#define SERVER_PROOF_PATH "/sonde/v1/proof"

enum {
    SERVER_NONCE_CHARACTERS = 32, // 128 random bits
    SERVER_PROOF_CHARACTERS = 64,
    SERVER_PROOFS_MAX = 8,   // maximum number of tokens of a server
    SERVER_ADDRESS_MAX = 64, // bytes with the NUL: "[IPv6 address]:port"
};

// Makes a nonce. Returns false if the kernel provides no random bits.
bool server_nonce_make(char out[SERVER_NONCE_CHARACTERS + 1]);
bool server_nonce_valid(struct str nonce);

// Writes "127.0.0.1:4242" or "[::1]:4242"; an IPv4 address within IPv6 is written as IPv4. Returns
// false if it is not a network address.
bool server_address_text(const struct sockaddr *address, char out[SERVER_ADDRESS_MAX]);

void server_proof_make(struct str token, struct str nonce, struct str address,
                       char out[SERVER_PROOF_CHARACTERS + 1]);

// True if an answer (ADDRESS and PROOFs) proves the token for this nonce. *address gets the
// server's end of the connection as the server sees it. The caller compares it with the address
// that it has connected to.
bool server_proof_check(struct str answer, struct str token, struct str nonce, struct str *address);

#endif
