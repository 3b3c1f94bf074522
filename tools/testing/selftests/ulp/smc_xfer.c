// SPDX-License-Identifier: GPL-2.0
/*
 * A stream over an SMC socket, verified by the receiver, for smc.sh.
 *
 *   smc_xfer PORT			receive one stream, and answer with its length
 *   smc_xfer PORT ADDRESS MIB		send a stream of this length; 0: until the connection ends
 *
 * Exit status: 0: the stream was received whole and unchanged; 2: the connection ended with an
 * error after the first byte (at the sender: after the first 64 KiB); 1: another failure.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif

#define WORDS	8192

static uint64_t words[WORDS];

static int fail(const char *what)
{
	printf("smc_xfer: %s: %m\n", what);
	return 1;
}

static int ended(const char *what, uint64_t bytes)
{
	printf("smc_xfer: %s after %" PRIu64 " bytes: %m\n", what, bytes);
	return bytes ? 2 : 1;
}

/* The word at this place of the stream */
static uint64_t word(uint64_t place)
{
	return (place + 1) * 0x9e3779b97f4a7c15;
}

static int receive(int fd)
{
	uint64_t bytes = 0, place = 0;
	size_t have = 0, i;
	ssize_t n;

	for (;;) {
		n = recv(fd, (char *)words + have, sizeof(words) - have, 0);
		if (n < 0)
			return ended("recv", bytes);
		if (!n)
			break;
		bytes += n;
		have += n;
		for (i = 0; i < have / 8; i++) {
			if (words[i] != word(place + i)) {
				printf("smc_xfer: word %" PRIu64 " is wrong\n", place + i);
				return 1;
			}
		}
		place += have / 8;
		/* keep the first bytes of a word whose last bytes have not arrived */
		memmove(words, words + have / 8, have % 8);
		have %= 8;
	}
	if (send(fd, &bytes, sizeof(bytes), 0) != sizeof(bytes))
		return ended("send", bytes);
	printf("smc_xfer: %" PRIu64 " bytes received\n", bytes);
	return 0;
}

static int transmit(int fd, uint64_t length)
{
	uint64_t bytes = 0, answer = 0;
	size_t i, done;
	ssize_t n;

	while (!length || bytes < length) {
		for (i = 0; i < WORDS; i++)
			words[i] = word(bytes / 8 + i);
		for (done = 0; done < sizeof(words); done += n) {
			n = send(fd, (char *)words + done, sizeof(words) - done, 0);
			if (n <= 0)
				return ended("send", bytes);
		}
		bytes += sizeof(words);
	}
	if (shutdown(fd, SHUT_WR))
		return ended("shutdown", bytes);
	if (recv(fd, &answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
		return ended("recv", bytes);
	printf("smc_xfer: %" PRIu64 " bytes sent, %" PRIu64 " received\n", bytes, answer);
	return answer != bytes;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_SMC, SOCK_STREAM, 0), one = 1;

	if (argc != 2 && argc != 4)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	if (fd < 0)
		return fail("socket");
	addr.sin_port = htons(atoi(argv[1]));
	if (argc == 4) {
		inet_pton(AF_INET, argv[2], &addr.sin_addr);
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
			return fail("connect");
		return transmit(fd, strtoull(argv[3], NULL, 10) << 20);
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		return fail("listen");
	fd = accept(fd, NULL, NULL);
	return fd < 0 ? fail("accept") : receive(fd);
}
