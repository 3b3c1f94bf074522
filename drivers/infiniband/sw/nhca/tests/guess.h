/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Somebody who has seen numbers that this host gave out, one after the other, and says what the
 * next will be, by every rule that a counter, a generator or a bad cipher would follow.
 *
 * For the kernel's tests and for programs: it needs nothing but integers.
 */
#ifndef NHCA_TESTS_GUESS_H
#define NHCA_TESTS_GUESS_H

/* numbers that are remembered: a power of two */
#define GUESS_SEEN	1024
/* guesses at each number: at most so many */
#define GUESS_EACH	64

/**
 * struct guesser - what it knows
 * @seen:    the last numbers; number n at n % GUESS_SEEN
 * @count:   of numbers seen
 * @mask:    of bits that numbers have
 * @gcd:     of all differences so far
 * @guesses: so far
 * @hits:    guesses that were right
 */
struct guesser {
	unsigned int seen[GUESS_SEEN];
	unsigned long count;
	unsigned int mask;
	unsigned int gcd;
	unsigned long guesses;
	unsigned long hits;
};

/* The number that came @ago numbers before the next. */
static inline unsigned int guess_back(const struct guesser *g, unsigned long ago)
{
	return g->seen[(g->count - ago) % GUESS_SEEN];
}

static inline unsigned int guess_gcd(unsigned int a, unsigned int b)
{
	unsigned int t;

	while (b) {
		t = a % b;
		a = b;
		b = t;
	}
	return a;
}

/* The inverse of an odd number modulo 2^32 (Newton). */
static inline unsigned int guess_inverse(unsigned int a)
{
	unsigned int x = a, i;

	for (i = 0; i < 5; i++)
		x *= 2 - a * x;
	return x;
}

/* A linear congruential generator modulo a power of two: its factor is in three numbers. */
static inline unsigned int guess_lcg(const struct guesser *g)
{
	unsigned int a = guess_back(g, 1) - guess_back(g, 2);
	unsigned int b = guess_back(g, 2) - guess_back(g, 3);

	if (!b)
		return guess_back(g, 1);
	/* as far as the difference can be divided by, the factor is not determined */
	while (!(b & 1)) {
		a >>= 1;
		b >>= 1;
	}
	return guess_back(g, 1) + a * guess_inverse(b) *
	       (guess_back(g, 1) - guess_back(g, 2));
}

/* Return: how many guesses are in @out. */
static inline unsigned int guess_make(const struct guesser *g, unsigned int *out)
{
	static const int steps[] = { 1, 2, 0x100, 0x101, 0x200, 0x1000, 0x10000 };
	unsigned int n = 0, last = guess_back(g, 1), near, i;
	unsigned long lag;

	/* counters, and what an allocator leaves between two numbers */
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		out[n++] = last + steps[i];
		out[n++] = last - steps[i];
		out[n++] = last ^ steps[i];
	}
	/* steps of a size that is not known */
	out[n++] = last + g->gcd;
	out[n++] = last - g->gcd;
	/* what is linear in a counter, in integers or in bits, shows at a lag of a power of two */
	for (lag = 1; lag <= GUESS_SEEN / 4; lag *= 2) {
		out[n++] = 2 * guess_back(g, lag) - guess_back(g, 2 * lag);
		out[n++] = last ^ guess_back(g, lag) ^ guess_back(g, lag + 1);
	}
	out[n++] = guess_lcg(g);
	/* beside any of those seen, and the same once more */
	near = guess_back(g, 1 + g->count * 7 % GUESS_SEEN);
	out[n++] = near;
	out[n++] = near + 1;
	out[n++] = near + 0x100;
	out[n++] = near ^ 0xff;
	return n;
}

/**
 * guess_next - guess, then be told
 * @next: the number that came
 * Nothing is guessed before GUESS_SEEN numbers have been seen.
 */
static inline void guess_next(struct guesser *g, unsigned int next)
{
	unsigned int out[GUESS_EACH], n = 0, i, j, hit;

	next &= g->mask;
	if (g->count >= GUESS_SEEN)
		n = guess_make(g, out);
	for (i = 0; i < n; i++) {
		out[i] &= g->mask;
		/* each number once: no guess counts twice */
		for (j = 0; j < i && out[j] != out[i]; j++)
			;
		hit = j == i;
		g->guesses += hit;
		g->hits += hit && out[i] == next;
	}
	if (g->count)
		g->gcd = guess_gcd(g->gcd, (next - guess_back(g, 1)) & g->mask);
	g->seen[g->count++ % GUESS_SEEN] = next;
}

/**
 * guess_limit - more hits than that are not chance
 * @range: numbers that there are
 * Return: the mean of the binomial distribution and 8 standard deviations, and 3: less than one
 * test in 10^9 exceeds it by chance.
 */
static inline unsigned long guess_limit(const struct guesser *g, unsigned long long range)
{
	unsigned long mean = g->guesses / (unsigned long)range, root = 0;

	while (root * root < mean + 1)
		root++;
	return mean + 8 * root + 3;
}

#endif /* NHCA_TESTS_GUESS_H */
