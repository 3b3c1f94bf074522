# SPDX-License-Identifier: GPL-2.0
# nhca: kernel module, rdma-core provider, and the tests of both. `make help` lists the targets.

KVERSION ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVERSION)/build
BUILD ?= $(CURDIR)/build
DRIVER := drivers/infiniband/sw/nhca
LAB := tools/testing/lab/lab

# Empty: userspace/Makefile looks for the source of the rdma-core in use.
RDMA_CORE_SRC ?=
# y: the module has its KUnit suites, for a kernel that has KUnit
KUNIT ?=
DESTDIR ?=
SYSCONFDIR ?= /etc
DATADIR ?= /usr/share
MANDIR ?= $(DATADIR)/man
UNITDIR ?= /lib/systemd/system
UDEVDIR ?= /lib/udev
# where Wireshark looks for dissectors in Lua
WIRESHARKDIR ?= /usr/lib/$(shell $(CC) -print-multiarch)/wireshark/plugins

# What users get: a folder for each command, with its manual page and what else belongs to it, and for scripts.
TOOLS := $(filter-out testing wireshark,$(patsubst tools/%/,%,$(wildcard tools/*/)))
# Commands in C have the name of their folder, as scripts do.
TOOL_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard $(foreach tool,$(TOOLS),tools/$(tool)/$(tool).c)))

# One Kbuild call for every target that the kernel's build system does for us. Recipes put a + in
# front, because make sees no $(MAKE) in them and would keep its job server to itself.
KBUILD_CALL = $(MAKE) -C $(KDIR) M=$(abspath $(DRIVER)) CONFIG_INFINIBAND_NHCA=m \
	$(if $(KUNIT),CONFIG_INFINIBAND_NHCA_KUNIT_TEST=y $(KUNIT_FLAGS))
# The kernel's own configuration has not this option, so that the C would not see it.
KUNIT_FLAGS = KCFLAGS="$(KCFLAGS) -DCONFIG_INFINIBAND_NHCA_KUNIT_TEST=1"
USERSPACE_CALL = $(MAKE) -C userspace RDMA_CORE_SRC=$(RDMA_CORE_SRC) BUILD=$(BUILD)/userspace

PROGRAM_FOLDERS := tools/testing/selftests tools/testing/bench userspace/libnhca/examples
PROGRAMS := $(patsubst %.c,$(BUILD)/selftests/%,\
	$(notdir $(wildcard $(PROGRAM_FOLDERS:=/*.c))))

.PHONY: all module provider tools man install install-tools deb selftests deps demo check check-long check-debug kunit bench \
	style clean distclean help

all: module provider tools	## the module, the provider and the commands (default)

module: | kernel-headers	## the kernel module; KDIR= names the kernel's build tree
	+$(KBUILD_CALL) modules

provider:	## the rdma-core provider; RDMA_CORE_SRC= names rdma-core's source
	+$(USERSPACE_CALL) all

tools: $(TOOL_PROGRAMS)	## the commands in C

man:	## manual pages of the provider's calls, of Markdown by pandoc
	+$(USERSPACE_CALL) man

install: install-tools | $(if $(DESTDIR),,root)	## module, module index, provider and commands on this machine (root), or in DESTDIR=
	+$(KBUILD_CALL) INSTALL_MOD_STRIP=1 CONFIG_MODULE_SIG_ALL= \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(abspath $(DESTDIR))) modules_install
	$(if $(DESTDIR),,depmod $$(modinfo -F vermagic $(DRIVER)/nhca.ko | cut -d' ' -f1))
	+$(USERSPACE_CALL) install DESTDIR=$(DESTDIR)

# A configuration that somebody has changed stays.
install-tools: $(TOOL_PROGRAMS) | $(if $(DESTDIR),,root)	## commands, their pages and units, the dissector; DESTDIR= puts them elsewhere
	@set -e; put() { install -D -m $$1 "$$2" "$(DESTDIR)$$3/$${2##*/}"; }; \
	for file in $(foreach tool,$(TOOLS),$(wildcard tools/$(tool)/*)) $(TOOL_PROGRAMS); do \
		folder=$${file%/*}; name=$${folder##*/}; \
		case $$file in \
		*.[1-8]) put 644 $$file $(MANDIR)/man$${file##*.} ;; \
		*.service) put 644 $$file $(UNITDIR) ;; \
		*.rules) put 644 $$file $(UDEVDIR)/rules.d ;; \
		*.conf) test -e $(DESTDIR)$(SYSCONFDIR)/$${file##*/} || put 644 $$file $(SYSCONFDIR) ;; \
		*.bt) put 755 $$file $(DATADIR)/nhca/$$name ;; \
		*/$$name) put 755 $$file \
			$$(test -e tools/$$name/$$name.1 && echo /usr/bin || echo /usr/sbin) ;; \
		esac; \
	done; put 644 tools/wireshark/nhca.lua $(WIRESHARKDIR)

# In a copy, because dpkg-buildpackage puts its results beside the source.
deb:	## Debian packages for this release, in BUILD/deb; RDMA_CORE_SRC= names its rdma-core's source
	@dpkg-checkbuilddeps || { \
		echo "make: apt-get build-dep ./ installs what is missing" >&2; exit 1; }
	rm -rf $(BUILD)/deb
	mkdir -p $(BUILD)/deb/nhca/build
	tar -cf - $(DEB_PARTS) | tar -C $(BUILD)/deb/nhca -xf -
	ln -s $(BUILD)/src $(BUILD)/deb/nhca/build/src
	cd $(BUILD)/deb/nhca && dpkg-buildpackage --build=binary --unsigned-changes
	rm -rf $(BUILD)/deb/nhca
	@ls $(BUILD)/deb/*.deb

selftests: $(PROGRAMS)	## the test programs in C; they link with the provider

deps:	## Debian packages that building and testing need (root or sudo)
	@tools/testing/deps

demo: deps	## two guests, nhca0 on each, three well-known programs between them
	@tools/testing/demo

check: deps	## all tests but those of check-long; ends with "N passed, N failed, N skipped"
	@tools/testing/check

check-long: deps	## the same and the tests that take longer
	@tools/testing/check --tier long

check-debug: deps	## the tests in guests once more, under KASAN, lockdep and kmemleak
	@tools/testing/check --kernel debug

kunit: deps	## KUnit suites, on user-mode Linux
	@tools/testing/kunit/run

bench: deps	## nhca beside rdma_rxe, siw and TCP, measured in guests
	@tools/testing/bench/bench run

style:	## checkpatch --strict over the sources
	@tools/testing/style

clean:	## what was compiled from this checkout
	rm -rf $(BUILD)/deb $(BUILD)/tools $(BUILD)/userspace $(BUILD)/include $(BUILD)/selftests $(BUILD)/lab/builds
	find $(DRIVER) \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' -o -name '.*.cmd' \
		-o -name modules.order -o -name Module.symvers \) -delete

distclean: clean	## everything that is not source, guest images included
	rm -rf $(BUILD)

help:	## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

# The direct verbs are where programs look for them: this checkout's header, and its library if it
# was built here, else the installed one. Only who calls it needs the library when it runs.
$(BUILD)/include/infiniband/%.h: userspace/libnhca/%.h
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/tools/%: tools/%.c
	@mkdir -p $(@D)
	$(CC) -O2 -g -Wall -Wextra $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $<

vpath %.c $(PROGRAM_FOLDERS)
$(BUILD)/selftests/%: %.c $(BUILD)/include/infiniband/nhcadv.h $(BUILD)/include/infiniband/nhcadv_msg.h $(wildcard tools/testing/selftests/*.h tools/testing/bench/*.h include/uapi/rdma/*.h)
	@mkdir -p $(@D)
	$(CC) -O2 -g -Wall -Wextra -I$(BUILD)/include -Iinclude/uapi -Iuserspace/libnhca -Itools/testing/selftests -o $@ $< \
		-L$(BUILD)/userspace/lib -Wl,--as-needed -lnhca -libverbs -lrdmacm -lpthread

# What packages are made of.
DEB_PARTS := Makefile dkms.conf debian drivers include userspace README.md Documentation \
	tools/wireshark $(TOOLS:%=tools/%)

.PHONY: kernel-headers root
kernel-headers:
	@test -e $(KDIR)/Makefile || { echo "make: $(KDIR) is no kernel build tree:" \
		"install linux-headers-$(KVERSION), or give KDIR=" >&2; exit 1; }
root:
	@test "$$(id -u)" = 0 || { echo "make: installing needs root: sudo make install" >&2; exit 1; }
