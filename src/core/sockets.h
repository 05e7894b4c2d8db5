/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sockets and endpoints by name; the bounded lists of what was seen of them. */

#include <netinet/in.h>

#include "core/evidence.h"

#define SOCKETS_MAX     1000u /* in each list; the rest is only counted */
#define SOCKET_TEXT_MAX 160

const char *socket_family_name(int family);     /* "inet", "unix"…; NULL: unknown */
const char *socket_type_name(int type);         /* "stream"…; NULL: unknown */
const char *socket_protocol_name(int protocol); /* "tcp"…; NULL: none */
const char *socket_state_name(const SocketRecord *record);

/* "tcp 127.0.0.1:80", "unix @name" for sentences; printable. Returns buffer. */
char *socket_format(const SocketRecord *record, char buffer[static SOCKET_TEXT_MAX]);

/* Somebody could send to it or connect to it: in state "listen", or a UDP port bound to no peer. */
bool socket_is_listening(const SocketRecord *record);

/* Appends, or only counts when the list is full. Takes what the record holds, also on failure. 0 or -ENOMEM.
 */
int socket_list_add(SocketList *list, SocketRecord *record);

/* The same for SocketEvidence.listening, in which each place stands once. One that is left open at the end
 * takes the place of one that is not when the list is full, so that a flood does not hide it. */
int socket_listening_add(SocketList *list, SocketRecord *record);
