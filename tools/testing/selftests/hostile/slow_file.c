// SPDX-License-Identifier: GPL-2.0
/*
 * slow_file: a file whose reads never complete, so that a page fault in a mapping of it waits.
 *
 *   slow_file FILE
 *
 * The program mounts itself (FUSE) over FILE, which must exist, and which then has 4,096 bytes. It
 * prints "mounted", and "read" each time that the kernel reads the file. When the program ends,
 * the waiting page faults fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/fuse.h>

static int fuse;

static int answer(const struct fuse_in_header *in, int error, void *out, size_t len)
{
	struct fuse_out_header head = { .len = sizeof(head) + len, .error = -error, .unique = in->unique };
	struct iovec iov[] = { { &head, sizeof(head) }, { out, len } };

	return writev(fuse, iov, 2) < 0 && errno != ENOENT ? -1 : 0;
}

static int serve(const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
				      .max_write = 4096 };
	struct fuse_attr_out attr = { .attr_valid = 3600, .attr = { .ino = 1, .size = 4096, .blocks = 8,
				      .mode = S_IFREG | 0644, .nlink = 1 } };
	struct fuse_open_out open = {};

	switch (in->opcode) {
	case FUSE_INIT:
		return answer(in, 0, &init, sizeof(init));
	case FUSE_GETATTR:
		return answer(in, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
		return answer(in, 0, &open, sizeof(open));
	case FUSE_RELEASE:
		return answer(in, 0, NULL, 0);
	case FUSE_READ:
		printf("read\n");
		return 0;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return 0;
	default:
		return answer(in, ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static char buf[1 << 16] __attribute__((aligned(8)));
	char options[128];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2) {
		fputs("usage: slow_file FILE\n", stderr);
		return 2;
	}
	fuse = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100644,user_id=0,group_id=0,allow_other", fuse);
	if (fuse < 0 || mount("slow_file", argv[1], "fuse", MS_NOSUID | MS_NODEV, options)) {
		perror("slow_file");
		return 1;
	}
	printf("mounted\n");
	while (read(fuse, buf, sizeof(buf)) > 0 || errno == EINTR || errno == ENOENT)
		if (serve((void *)buf))
			break;
	perror("slow_file");
	return 1;
}
