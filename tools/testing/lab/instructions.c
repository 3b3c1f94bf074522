// SPDX-License-Identifier: GPL-2.0
/*
 * A QEMU plugin that counts each instruction that an emulated guest executes between two marks.
 *
 * A mark is a NOP of seven bytes that no compiler generates (bench/profile.h), so a program can set
 * it at no cost and without leaving the guest.  When QEMU ends, the plugin writes the counts to the
 * file of the argument "out=".  The file has a line for each translated block of the kernel (a
 * sequence of instructions that is entered only at its start) that was executed:
 * "ADDRESS INSTRUCTIONS EXECUTIONS".  A line with address 0 has the instructions of user space.
 *
 * Debian 12 does not have QEMU's header.  So the declarations of the interface are below, for
 * PLUGIN_API 1, which QEMU 7.2 of Debian 12 has, and PLUGIN_API 3, which QEMU 10 of Debian 13 has.
 * Neither of the two accepts a plugin of the other version.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API		__attribute__((visibility("default")))
#define ADD_U64		0	/* qemu_plugin_op */
#define NO_REGS		0	/* qemu_plugin_cb_flags */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;
typedef void (*translated_cb)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*executed_cb)(unsigned int vcpu, void *data);

API int qemu_plugin_version = PLUGIN_API;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translated_cb cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed_cb cb, int flags,
					    void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*cb)(plugin_id id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
API int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

/* A counter to which translated code adds */
#if PLUGIN_API == 1
typedef uint64_t counter;

void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *ptr, uint64_t imm);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);

static void counter_init(counter *c)
{
	*c = 0;
}

static uint64_t counter_value(const counter *c)
{
	return *c;
}

/* Add @n each time that the block is executed. */
static void counter_add(struct qemu_plugin_tb *tb, counter *c, uint64_t n)
{
	qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, c, n);
}

static void insn_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes, size_t size)
{
	memcpy(bytes, qemu_plugin_insn_data(insn), size);
}
#else
/* QEMU: an element of a scoreboard, which has one for each virtual CPU */
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} counter;

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
uint64_t qemu_plugin_u64_sum(counter c);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, int op, counter c,
						       uint64_t imm);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *bytes, size_t size);

static void counter_init(counter *c)
{
	c->score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	c->offset = 0;
}

static uint64_t counter_value(const counter *c)
{
	return qemu_plugin_u64_sum(*c);
}

/* Add @n each time that the block is executed. */
static void counter_add(struct qemu_plugin_tb *tb, counter *c, uint64_t n)
{
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, ADD_U64, *c, n);
}

static void insn_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes, size_t size)
{
	qemu_plugin_insn_data(insn, bytes, size);
}
#endif

/* A block of code, which QEMU may translate several times */
struct block {
	uint64_t address;
	uint64_t instructions;
	counter executions;	/* since the start of QEMU */
	uint64_t before;	/* value of executions when counting started */
	uint64_t counted;
	struct block *next;
};

#define BUCKETS		65536

static struct block *blocks[BUCKETS];
/* User space: each execution is one instruction. */
static struct block user = { .instructions = 1 };
static bool counting;
static const char *out;

static void block_count(struct block *b, bool on)
{
	if (on)
		b->before = counter_value(&b->executions);
	else
		b->counted += counter_value(&b->executions) - b->before;
}

/* @data: not NULL for the mark that starts counting */
static void marked(unsigned int vcpu, void *data)
{
	bool on = data;
	struct block *b;
	int i;

	if (on == counting)
		return;
	counting = on;
	block_count(&user, on);
	for (i = 0; i < BUCKETS; i++)
		for (b = blocks[i]; b; b = b->next)
			block_count(b, on);
}

static struct block *block_of(uint64_t address, uint64_t instructions)
{
	struct block **bucket = &blocks[(address ^ address >> 16 ^ instructions << 8) % BUCKETS], *b;

	for (b = *bucket; b; b = b->next)
		if (b->address == address && b->instructions == instructions)
			return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	counter_init(&b->executions);
	b->address = address;
	b->instructions = instructions;
	b->next = *bucket;
	*bucket = b;
	return b;
}

/* The mark is nopl 0x6861633N(%rax): the displacement "1cah" starts counting, "0cah" ends it. */
static void look_for_mark(struct qemu_plugin_insn *insn)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x80 };
	uint8_t bytes[7];

	if (qemu_plugin_insn_size(insn) != sizeof(bytes))
		return;
	insn_bytes(insn, bytes, sizeof(bytes));
	if (memcmp(bytes, nop, sizeof(nop)) || memcmp(bytes + 4, "cah", 3) || (bytes[3] | 1) != '1')
		return;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, NO_REGS, bytes[3] == '1' ? &user : NULL);
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb), n = qemu_plugin_tb_n_insns(tb);
	bool kernel = address >> 63;
	uint64_t i;

	for (i = 0; !kernel && i < n; i++)
		look_for_mark(qemu_plugin_tb_get_insn(tb, i));
	if (kernel)
		counter_add(tb, &block_of(address, n)->executions, 1);
	else
		counter_add(tb, &user.executions, n);
}

static void print(FILE *file, const struct block *b)
{
	if (b->counted)
		fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", b->address,
			b->counted * b->instructions, b->counted);
}

static void ends(plugin_id id, void *data)
{
	FILE *file = fopen(out, "w");
	struct block *b;
	int i;

	if (!file)
		return;
	marked(0, NULL);
	print(file, &user);
	for (i = 0; i < BUCKETS; i++)
		for (b = blocks[i]; b; b = b->next)
			print(file, b);
	fclose(file);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return 1;
	out = strdup(argv[0] + 4);
	if (!out)
		return 1;
	counter_init(&user.executions);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ends, NULL);
	return 0;
}
