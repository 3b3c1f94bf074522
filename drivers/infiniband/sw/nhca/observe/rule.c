// SPDX-License-Identifier: GPL-2.0
/* Rules of fault injection: their text, the items that they match, and the items that they hit. */
#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/seq_file.h>
#include <linux/siphash.h>
#include <linux/string.h>

#include "../nhca.h"
#include "../wire/bth.h"
#include "rule.h"

#define NHCA_PPM		1000000
#define NHCA_MAX_DELAY_MS	10000
#define NHCA_MAX_LINK_MS	60000
#define NHCA_MAX_REORDER	64
/* largest seed: user space programs store it in a signed long */
#define NHCA_MAX_SEED		S64_MAX

/* Bits for the words of a rule: nhca_kind.may has the words that may follow a kind of fault */
enum {
	GIVEN_WAY		= BIT(0),
	GIVEN_QP		= BIT(1),
	GIVEN_OPCODE		= BIT(2),
	GIVEN_PROBABILITY	= BIT(3),
	GIVEN_EVERY		= BIT(4),
	GIVEN_TIMES		= BIT(5),
	GIVEN_SEED		= BIT(6),
	GIVEN_FRAMEWORK		= BIT(7),
	GIVEN_NOW		= BIT(8),
};

#define GIVEN_WHEN	(GIVEN_PROBABILITY | GIVEN_EVERY | GIVEN_TIMES | GIVEN_SEED | \
			 GIVEN_FRAMEWORK)
#define GIVEN_WHOM	(GIVEN_QP | GIVEN_OPCODE)

/* A value and its name in the text of a rule */
struct nhca_named {
	const char *name;
	u32 value;
};

static const struct nhca_named nak_names[] = {
	{ "sequence", NHCA_NAK_PSN_SEQ },
	{ "invalid", NHCA_NAK_INVALID_REQ },
	{ "access", NHCA_NAK_REM_ACCESS },
	{ "operational", NHCA_NAK_REM_OP },
	{}
};

/* errors with which the registration of memory may fail */
static const struct nhca_named errno_names[] = {
	{ "EPERM", EPERM }, { "EINTR", EINTR }, { "EIO", EIO }, { "EAGAIN", EAGAIN },
	{ "ENOMEM", ENOMEM }, { "EACCES", EACCES }, { "EFAULT", EFAULT }, { "EBUSY", EBUSY },
	{ "ENODEV", ENODEV }, { "EINVAL", EINVAL }, { "ENOSPC", ENOSPC },
	{ "EOPNOTSUPP", EOPNOTSUPP },
	{}
};

/**
 * struct nhca_kind - properties of a kind of fault
 * @name:    its name in rules
 * @at:      default place
 * @may:     GIVEN_*: words that may follow the kind
 * @max:     the argument is a number from 1 to @max; 0: the argument is not a number
 * @names:   the argument is one of these names; NULL: the argument is not a name
 */
struct nhca_kind {
	const char *name;
	enum nhca_fault_point at;
	u32 may;
	u32 max;
	const struct nhca_named *names;
};

static const struct nhca_kind kinds[NHCA_FAULT_KINDS] = {
	[NHCA_FAULT_DROP] = { "drop", NHCA_AT_SEND, GIVEN_WAY | GIVEN_WHOM | GIVEN_WHEN },
	[NHCA_FAULT_DELAY] = { "delay", NHCA_AT_SEND, GIVEN_WAY | GIVEN_WHOM | GIVEN_WHEN,
			       NHCA_MAX_DELAY_MS },
	[NHCA_FAULT_DUPLICATE] = { "duplicate", NHCA_AT_SEND,
				   GIVEN_WAY | GIVEN_WHOM | GIVEN_WHEN },
	[NHCA_FAULT_REORDER] = { "reorder", NHCA_AT_SEND, GIVEN_WAY | GIVEN_WHOM | GIVEN_WHEN,
				 NHCA_MAX_REORDER },
	[NHCA_FAULT_CORRUPT] = { "corrupt", NHCA_AT_SEND, GIVEN_WAY | GIVEN_WHOM | GIVEN_WHEN },
	[NHCA_FAULT_LINK] = { "link", NHCA_AT_SEND, GIVEN_WHOM | GIVEN_WHEN | GIVEN_NOW,
			      NHCA_MAX_LINK_MS },
	[NHCA_FAULT_NAK] = { "nak", NHCA_AT_REQUEST, GIVEN_WHOM | GIVEN_WHEN, 0, nak_names },
	[NHCA_FAULT_RNR] = { "rnr", NHCA_AT_BUFFER, GIVEN_WHOM | GIVEN_WHEN },
	[NHCA_FAULT_CQ] = { "cq", NHCA_AT_CQE, GIVEN_QP | GIVEN_WHEN },
	[NHCA_FAULT_MR] = { "mr", NHCA_AT_MR, GIVEN_WHEN, 0, errno_names },
};

/* ---- opcodes ---- */

/* Each name stands for all opcodes whose nhca_opinfo.flags contain the value of the name */
static const struct nhca_named opcode_groups[] = {
	{ "request", NHCA_OPF_REQUEST },
	{ "response", NHCA_OPF_RESPONSE },
	{ "send", NHCA_OPF_SEND },
	{ "write", NHCA_OPF_WRITE },
	{ "read", NHCA_OPF_READ },
	{ "atomic", NHCA_OPF_ATOMIC },
	{ "read_response", NHCA_OPF_READ_RESP },
	{ "rcxt", NHCA_OPF_RXETH },
	{}
};

/* Convert the specification's name of an opcode to lower case, with _ in place of blanks. */
static void opcode_word(const struct nhca_opinfo *info, char *word)
{
	unsigned int i;

	for (i = 0; info->name[i] && i < NHCA_OPCODE_NAME - 1; i++)
		word[i] = info->name[i] == ' ' ? '_' : tolower(info->name[i]);
	word[i] = '\0';
}

/* Return: true if @name names the opcode, with or without the service: ud_send_only, send_only. */
static bool opcode_is(const struct nhca_opinfo *info, const char *name)
{
	char word[NHCA_OPCODE_NAME];
	const char *behind;

	opcode_word(info, word);
	behind = strchr(word, '_');
	return !strcmp(word, name) || (behind && !strcmp(behind + 1, name));
}

static const struct nhca_named *find_named(const struct nhca_named *names, const char *name)
{
	for (; names->name; names++)
		if (!strcmp(names->name, name))
			return names;
	return NULL;
}

static const char *name_of(const struct nhca_named *names, u32 value)
{
	while (names->value != value)
		names++;
	return names->name;
}

static int set_opcode(struct nhca_rule *r, const char *name)
{
	const struct nhca_named *group = find_named(opcode_groups, name);
	const struct nhca_opinfo *info;
	unsigned int i;

	if (strscpy(r->opcode, name, sizeof(r->opcode)) < 0)
		return -ENXIO;
	for (i = 0; i < NHCA_FAULT_OPCODES; i++) {
		info = nhca_opinfo(i);
		if (info && (group ? info->flags & group->value : opcode_is(info, name)))
			__set_bit(i, r->opcodes);
	}
	return bitmap_empty(r->opcodes, NHCA_FAULT_OPCODES) ? -ENXIO : 0;
}

void nhca_rule_show_opcodes(struct seq_file *m)
{
	const struct nhca_named *group;
	const struct nhca_opinfo *info;
	char word[NHCA_OPCODE_NAME];
	unsigned int i;

	for (group = opcode_groups; group->name; group++)
		seq_printf(m, "%s\n", group->name);
	for (i = 0; i < NHCA_FAULT_OPCODES; i++) {
		info = nhca_opinfo(i);
		if (!info)
			continue;
		opcode_word(info, word);
		seq_printf(m, "%s\n", word);
	}
}

/* ---- parsing ---- */

static int set_number(u32 *to, const char *word, u32 max)
{
	int err = kstrtou32(word, 0, to);

	if (err)
		return err;
	return *to && *to <= max ? 0 : -ERANGE;
}

/* Parse a percentage with at most four decimals: "25%", "0.01%". */
static int set_probability(u32 *ppm, const char *word)
{
	u32 unit = NHCA_PPM / 100;
	bool point = false;
	u32 value = 0;

	if (!isdigit(*word))
		return -EINVAL;
	for (; *word && *word != '%'; word++) {
		if (*word == '.' && !point) {
			point = true;
			continue;
		}
		if (!isdigit(*word) || (point && unit == 1))
			return -EINVAL;
		if (point)
			unit /= 10;
		value = point ? value + unit * (*word - '0') :
				value * 10 + unit * (*word - '0');
		if (value > NHCA_PPM)
			return -ERANGE;
	}
	if (strcmp(word, "%"))
		return -EINVAL;
	*ppm = value;
	return value ? 0 : -ERANGE;
}

static int set_seed(u64 *seed, const char *word)
{
	int err = kstrtou64(word, 0, seed);

	if (err)
		return err;
	return *seed <= NHCA_MAX_SEED ? 0 : -ERANGE;
}

/* Return: the next word, or NULL at the end. */
static char *next_word(char **text)
{
	char *word;

	do {
		word = strsep(text, " \t\n");
	} while (word && !*word);
	return word;
}

static int set_kind(struct nhca_rule *r, char **text)
{
	const char *word = next_word(text);
	const struct nhca_named *named;
	const struct nhca_kind *k;

	for (r->kind = NHCA_FAULT_DROP; r->kind < NHCA_FAULT_KINDS; r->kind++)
		if (word && !strcmp(kinds[r->kind].name, word))
			break;
	if (r->kind == NHCA_FAULT_KINDS)
		return -EINVAL;
	k = &kinds[r->kind];
	r->at = k->at;
	if (!k->max && !k->names)
		return 0;
	word = next_word(text);
	if (!word)
		return -EINVAL;
	if (k->max)
		return set_number(&r->arg, word, k->max);
	named = find_named(k->names, word);
	if (!named)
		return -EINVAL;
	r->arg = named->value;
	return 0;
}

/* Parse the word @key and its argument. @bit: set to the GIVEN_* bit of the word. */
static int set_word(struct nhca_rule *r, const char *key, u32 *bit, char **text)
{
	static const struct nhca_named keys[] = {
		{ "send", GIVEN_WAY }, { "receive", GIVEN_WAY }, { "framework", GIVEN_FRAMEWORK },
		{ "now", GIVEN_NOW }, { "qp", GIVEN_QP }, { "opcode", GIVEN_OPCODE },
		{ "probability", GIVEN_PROBABILITY }, { "every", GIVEN_EVERY },
		{ "times", GIVEN_TIMES }, { "seed", GIVEN_SEED },
		{}
	};
	const struct nhca_named *named = find_named(keys, key);
	const char *word;

	if (!named)
		return -EINVAL;
	*bit = named->value;
	switch (*bit) {
	case GIVEN_WAY:
		r->at = *key == 's' ? NHCA_AT_SEND : NHCA_AT_RECEIVE;
		return 0;
	case GIVEN_FRAMEWORK:
		r->framework = true;
		return IS_ENABLED(CONFIG_FAULT_INJECTION_DEBUG_FS) ? 0 : -EOPNOTSUPP;
	case GIVEN_NOW:
		r->now = true;
		return 0;
	}
	word = next_word(text);
	if (!word)
		return -EINVAL;
	switch (*bit) {
	case GIVEN_QP:
		return set_number(&r->qpn, word, NHCA_QPN_MASK);
	case GIVEN_OPCODE:
		return set_opcode(r, word);
	case GIVEN_PROBABILITY:
		return set_probability(&r->ppm, word);
	case GIVEN_EVERY:
		return set_number(&r->every, word, U32_MAX);
	case GIVEN_TIMES:
		return set_number(&r->times, word, U32_MAX);
	default:
		return set_seed(&r->seed, word);
	}
}

/* Return: true if a rule has the word of @bit twice, or the word excludes an earlier word. */
static bool contradicts(u32 given, u32 bit)
{
	const u32 when = GIVEN_PROBABILITY | GIVEN_EVERY | GIVEN_FRAMEWORK;

	if (given & bit)
		return true;
	if ((given | bit) & GIVEN_NOW)
		return (given | bit) != GIVEN_NOW;
	return (bit & when) && (given & when);
}

int nhca_rule_parse(struct nhca_rule *r, char *text)
{
	u32 given = 0, bit = 0;
	const char *key;
	int err;

	err = set_kind(r, &text);
	if (err)
		return err;
	r->ppm = NHCA_PPM;
	while ((key = next_word(&text))) {
		err = set_word(r, key, &bit, &text);
		if (err)
			return err;
		if (!(kinds[r->kind].may & bit) || contradicts(given, bit))
			return -EINVAL;
		given |= bit;
	}
	return 0;
}

/* ---- printing ---- */

static void show_when(const struct nhca_rule *r, struct seq_file *m)
{
	u32 whole = r->ppm / (NHCA_PPM / 100), rest = r->ppm % (NHCA_PPM / 100);

	if (r->framework)
		seq_puts(m, " framework");
	else if (r->every)
		seq_printf(m, " every %u", r->every);
	else if (rest)
		seq_printf(m, " probability %u.%04u%%", whole, rest);
	else
		seq_printf(m, " probability %u%%", whole);
	if (r->times)
		seq_printf(m, " times %u", r->times);
	if (r->seed)
		seq_printf(m, " seed %llu", r->seed);
}

void nhca_rule_show(const struct nhca_rule *r, struct seq_file *m)
{
	const struct nhca_kind *k = &kinds[r->kind];

	seq_printf(m, "%u: %s", r->id, k->name);
	if (k->names)
		seq_printf(m, " %s", name_of(k->names, r->arg));
	else if (k->max)
		seq_printf(m, " %u", r->arg);
	if (k->may & GIVEN_WAY)
		seq_puts(m, r->at == NHCA_AT_SEND ? " send" : " receive");
	if (r->qpn)
		seq_printf(m, " qp %u", r->qpn);
	if (*r->opcode)
		seq_printf(m, " opcode %s", r->opcode);
	show_when(r, m);
	seq_printf(m, ": hit %llu of %llu\n", r->hits, r->seen);
}

/* ---- deciding ---- */

bool nhca_rule_matches(const struct nhca_rule *r, enum nhca_fault_point at, u32 qpn, u8 opcode)
{
	return r->at == at && (!r->qpn || r->qpn == qpn) &&
	       (!*r->opcode || test_bit(opcode, r->opcodes));
}

u32 nhca_rule_stream(const struct nhca_rule *r, u32 qpn, u8 opcode)
{
	const u32 numbers = NHCA_QPN_MAX - NHCA_QPN_MIN + 1;
	const struct nhca_opinfo *info = nhca_opinfo(opcode);
	u32 place;

	/* QP 1, multicast and items without a QP (QPN 0) have no position in the order of QPNs */
	if (qpn < NHCA_QPN_MIN || qpn > NHCA_QPN_MAX) {
		place = numbers + qpn;
	} else {
		place = r->place ? r->place(qpn) : qpn - NHCA_QPN_MIN;
		place = (place + numbers - r->base) % numbers;
	}
	return place << 1 | (info && (info->flags & NHCA_OPF_RESPONSE));
}

u64 nhca_rule_dice(const struct nhca_rule *r, u32 stream, unsigned long n)
{
	const siphash_key_t key = { { r->seed, stream } };

	return siphash_1u64(n, &key);
}

bool nhca_rule_hits(const struct nhca_rule *r, u32 stream, unsigned long n)
{
	if (r->every)
		return n % r->every == r->every - 1;
	return (u64)(u32)nhca_rule_dice(r, stream, n) * NHCA_PPM >> 32 < r->ppm;
}
