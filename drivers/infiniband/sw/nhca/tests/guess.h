/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A guesser gets, one after the other, the numbers that this host gave out, and guesses each next
 * number. The guesser tries the rules of counters, of linear congruential generators, and of other
 * linear functions of a counter.
 */
#ifndef NHCA_TESTS_GUESS_H
#define NHCA_TESTS_GUESS_H

/* how many of the last numbers the guesser stores; a power of two */
#define GUESS_SEEN	1024
/* maximum number of guesses for each number */
#define GUESS_EACH	64

/**
 * struct guesser - state of a guesser
 * @seen:    the last numbers; number n is at n % GUESS_SEEN
 * @count:   numbers seen so far
 * @mask:    the bits of a number that are compared
 * @gcd:     greatest common divisor of all differences of successive numbers so far
 * @guesses: guesses so far
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

/*
 * Return: an earlier number. @ago: 1: the latest number; 2: the number before the latest; and so
 * on.
 */
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

/* Return: the inverse of the odd number @a modulo 2^32 (Newton's method). */
static inline unsigned int guess_inverse(unsigned int a)
{
	unsigned int x = a, i;

	for (i = 0; i < 5; i++)
		x *= 2 - a * x;
	return x;
}

/* Guess a linear congruential generator modulo a power of two: three numbers give its factor. */
static inline unsigned int guess_lcg(const struct guesser *g)
{
	unsigned int a = guess_back(g, 1) - guess_back(g, 2);
	unsigned int b = guess_back(g, 2) - guess_back(g, 3);

	if (!b)
		return guess_back(g, 1);
	/* an even @b has no inverse, so divide both differences by the powers of two in @b */
	while (!(b & 1)) {
		a >>= 1;
		b >>= 1;
	}
	return guess_back(g, 1) + a * guess_inverse(b) *
	       (guess_back(g, 1) - guess_back(g, 2));
}

/* Write the guesses to @out. Return: number of guesses. */
static inline unsigned int guess_make(const struct guesser *g, unsigned int *out)
{
	static const int steps[] = { 1, 2, 0x100, 0x101, 0x200, 0x1000, 0x10000 };
	unsigned int n = 0, last = guess_back(g, 1), near, i;
	unsigned long lag;

	/* the next number of a counter, and usual distances between objects of an allocator */
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		out[n++] = last + steps[i];
		out[n++] = last - steps[i];
		out[n++] = last ^ steps[i];
	}
	/* counters with another step, which divides all differences */
	out[n++] = last + g->gcd;
	out[n++] = last - g->gcd;
	/*
	 * if numbers are a linear function of a counter, over integers or over bits, their
	 * differences at these lags repeat
	 */
	for (lag = 1; lag <= GUESS_SEEN / 4; lag *= 2) {
		out[n++] = 2 * guess_back(g, lag) - guess_back(g, 2 * lag);
		out[n++] = last ^ guess_back(g, lag) ^ guess_back(g, lag + 1);
	}
	out[n++] = guess_lcg(g);
	/* a number seen before, and its neighbors */
	near = guess_back(g, 1 + g->count * 7 % GUESS_SEEN);
	out[n++] = near;
	out[n++] = near + 1;
	out[n++] = near + 0x100;
	out[n++] = near ^ 0xff;
	return n;
}

/**
 * guess_next - guess the next number, then record the number that was drawn
 * @g:    the guesser; it guesses only after it has seen GUESS_SEEN numbers
 * @next: the number that was drawn
 * Context: any.
 */
static inline void guess_next(struct guesser *g, unsigned int next)
{
	unsigned int out[GUESS_EACH], n = 0, i, j, hit;

	next &= g->mask;
	if (g->count >= GUESS_SEEN)
		n = guess_make(g, out);
	for (i = 0; i < n; i++) {
		out[i] &= g->mask;
		/* count equal guesses once */
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
 * guess_limit - get the number of hits that chance does not exceed
 * @g:     the guesser
 * @range: number of possible values
 * Context: any.
 * Return: the mean of the binomial distribution (rounded down), plus 8 times an upper bound of the
 * standard deviation, plus 3. Chance exceeds the result in fewer than one of 10^9 tests.
 */
static inline unsigned long guess_limit(const struct guesser *g, unsigned long long range)
{
	unsigned long mean = g->guesses / (unsigned long)range, root = 0;

	while (root * root < mean + 1)
		root++;
	return mean + 8 * root + 3;
}

#endif /* NHCA_TESTS_GUESS_H */
