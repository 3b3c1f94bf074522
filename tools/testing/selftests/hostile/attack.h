/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs attacks of a hostile process on one device, and checks that another process still works.
 *
 * Each attack runs in its own process, on queue pairs of the device that are connected with each
 * other.  A bystander, another process with a pair of queue pairs, moves data and checks every byte
 * during and after each attack.  An attack may stop the bystander (SIGSTOP) while the attack runs.
 * The results are a KTAP report.  Warnings of the kernel appear only in its log, which the caller
 * must check.
 */
#ifndef ATTACK_H
#define ATTACK_H

#include <signal.h>
#include <sys/wait.h>

#include "ends.h"
#include "ktap.h"

#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

struct attack {
	const char *name;
	void (*run)(void);
	bool seeded;		/* run the attack with many seeds */
	int signal;		/* signal that may end the attack; 0: none */
};

struct judge {
	pid_t bystander;
	char why[448];
};

extern const enum ibv_qp_type types[3];
extern struct judge judge;

void pair_make(struct end *a, struct end *b, enum ibv_qp_type type);
void pair_destroy(struct end *a, struct end *b);
struct nhca_send_wqe *good_wqe(struct end *a, struct end *b, uint64_t wr_id);
void publish(struct end *a);
void verdict(const char *name, const char *why);
/* Start the bystander, and return when it has moved data for a while without an attack. */
void bystander_start(void);
/* Return: NULL, or why the bystander has ended since the last call. */
const char *bystander_ended(void);
/* Let the bystander end, and print its results. */
void bystander_stop(void);
const char *undisturbed(void);
const char *attack(const struct attack *a, unsigned int seed);
int attacks_main(int argc, char **argv, const struct attack *attacks, int n);

#endif /* ATTACK_H */
