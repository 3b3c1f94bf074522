# SPDX-License-Identifier: GPL-2.0
# Builds nhca's kernel module, rdma-core provider and messages library, and runs their tests. `make help` lists the
# targets.

KVERSION ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVERSION)/build
BUILD ?= $(CURDIR)/build
DRIVER := drivers/infiniband/sw/nhca
LAB := tools/testing/lab/lab

# If this is empty, userspace/Makefile looks for the source of the installed rdma-core.
RDMA_CORE_SRC ?=
# Folders or tarballs with the source of several releases of rdma-core, for providers and deb.
RDMA_CORE_SRCS ?=
# y: build the module with its KUnit suites; the kernel must have KUnit
KUNIT ?=
DESTDIR ?=
SYSCONFDIR ?= /etc
DATADIR ?= /usr/share
MANDIR ?= $(DATADIR)/man
UNITDIR ?= /lib/systemd/system
UDEVDIR ?= /lib/udev
# folder where Wireshark looks for dissectors in Lua
WIRESHARKDIR ?= /usr/lib/$(shell $(CC) -print-multiarch)/wireshark/plugins

# Folders to install: one for each command, with its manual page and other files, and one for scripts.
TOOLS := $(filter-out testing wireshark,$(patsubst tools/%/,%,$(wildcard tools/*/)))
# A command in C has the name of its folder, like a command that is a script.
TOOL_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard \
	$(foreach tool,$(filter-out nhca-store,$(TOOLS)),tools/$(tool)/$(tool).c)))

# The call of Kbuild for all targets that the kernel's build system builds. Recipes have a + in front of it, because
# make sees no $(MAKE) in them and would not share its job server.
KBUILD_CALL = $(MAKE) -C $(KDIR) M=$(abspath $(DRIVER)) CONFIG_INFINIBAND_NHCA=m \
	$(if $(KUNIT),CONFIG_INFINIBAND_NHCA_KUNIT_TEST=y $(KUNIT_FLAGS))
# The kernel's configuration does not have this option, so the compiler needs a macro.
KUNIT_FLAGS = KCFLAGS="$(KCFLAGS) -DCONFIG_INFINIBAND_NHCA_KUNIT_TEST=1"
USERSPACE_CALL = $(MAKE) -C userspace RDMA_CORE_SRC=$(RDMA_CORE_SRC) BUILD=$(BUILD)/userspace

SELFTESTS := tools/testing/selftests
# the code that test programs share
TEST_LIB := $(BUILD)/testlib/libtest.a
PROGRAM_FOLDERS := $(filter-out $(SELFTESTS)/lib,$(patsubst %/,%,$(wildcard $(SELFTESTS)/*/))) \
	tools/testing/bench userspace/libnhca/examples
# Sources that are parts of a program: PARTS_PROGRAM
PARTS_accumulate := forged
PARTS_channel := channel_fence channel_full channel_refused
PARTS_channel_forged := channel_watch
PARTS_channel_jobs := channel_watch
PARTS_channel_replay := channel_watch
PARTS_dm_odp := dm_odp_dm
PARTS_fail_nth := fail_nth_steps
PARTS_history := history_peer
PARTS_hostile_rings := attack ends
PARTS_hostile_user := attack ends
PARTS_hostile_wqes := attack ends
PARTS_nhcadv_accumulate := example
PARTS_nhcadv_half := example
PARTS_nhcadv_move := example
PARTS_nhcadv_write := example
PARTS_late_reads := late_capture late_channels
PARTS_direct := direct_disk
PARTS_direct_files := direct_disk
PARTS_direct_hung := direct_disk
PARTS_direct_power := direct_disk
PARTS_direct_write := direct_disk
PARTS_revocation := revocation_common
PARTS_raw := raw_end raw_frame
PARTS_rcxt_forge := roce_out
PARTS_third := forged
PARTS_verbs_api := verbs_api_events verbs_api_queues
PARTS_verify_xfer := xfer
PARTS_windows := windows_refused
PARTS := $(foreach list,$(filter PARTS_%,$(.VARIABLES)),$($(list)))
# Sources that are libraries for LD_PRELOAD
PRELOADS := cm_order
PROGRAMS := $(patsubst %,$(BUILD)/selftests/%,$(PRELOADS:=.so) $(filter-out $(PARTS) $(PRELOADS),\
	$(basename $(notdir $(wildcard $(PROGRAM_FOLDERS:=/*.c))))))

# A command that consists of several files and uses librdmacm
STORE := $(BUILD)/tools/nhca-store/nhca-store

.PHONY: all module provider providers messages tools store man install install-module install-tools install-providers prebuilt deb \
	selftests pictures deps demo check check-long check-debug kunit bench style clean distclean help

all: module provider messages tools store	## build the module, the provider, the messages library and the commands (default)

module: | kernel-headers	## build the kernel module; KDIR= is the kernel's build tree
	+$(KBUILD_CALL) modules

provider:	## build the rdma-core provider; RDMA_CORE_SRC= is rdma-core's source
	+$(USERSPACE_CALL) all

providers:	## build a provider for each rdma-core in RDMA_CORE_SRCS=, for containers and other hosts
	+@userspace/providers $(BUILD) $(RDMA_CORE_SRCS)

messages: provider	## build the library of reliable messages, libnhcamsg
	+$(USERSPACE_CALL) messages

tools: $(TOOL_PROGRAMS)	## build the commands in C

# Of rdma-core, the source that the provider was built in has librdmacm.
store: provider	## build nhca-store, which exports files and disks by RDMA
	@cmake --build $(BUILD)/userspace --target rdmacm > /dev/null
	+@$(MAKE) --no-print-directory $(STORE)

man:	## build the manual pages of the libraries' calls with pandoc
	+$(USERSPACE_CALL) man

install: install-module install-tools	## install module, module index, provider, messages library and commands on this machine (root), or in DESTDIR=
	+$(USERSPACE_CALL) install DESTDIR=$(DESTDIR)

install-module: | $(if $(DESTDIR),,root)	## install the module and the module index (root), or the module in DESTDIR=
	+$(KBUILD_CALL) INSTALL_MOD_STRIP=1 CONFIG_MODULE_SIG_ALL= \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(abspath $(DESTDIR))) modules_install
	$(if $(DESTDIR),,depmod $$(modinfo -F vermagic $(DRIVER)/nhca.ko | cut -d' ' -f1))

# An existing configuration file is not overwritten.
install-tools: $(TOOL_PROGRAMS) | $(if $(DESTDIR),,root)	## install commands, their pages and units, and the dissector (root), or in DESTDIR=
	@set -e; put() { install -D -m $$1 "$$2" "$(DESTDIR)$$3/$${2##*/}"; }; \
	for file in $(foreach tool,$(TOOLS),$(wildcard tools/$(tool)/*)) $(TOOL_PROGRAMS) $(wildcard $(STORE)); do \
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

install-providers:	## install the providers of `make providers` in /usr/lib/nhca/providers (root), or below DESTDIR=
	@for file in $(BUILD)/providers/*/*.so; do \
		install -D -m 755 $$file $(DESTDIR)/usr/lib/nhca/$${file#$(BUILD)/}; done

prebuilt: $(TOOL_PROGRAMS)	## archive the module and the providers of this machine in BUILD/prebuilt, for tools/setup-nhca
	rm -rf $(BUILD)/prebuilt/root
	+$(KBUILD_CALL) INSTALL_MOD_STRIP=1 CONFIG_MODULE_SIG_ALL= INSTALL_MOD_PATH=$(BUILD)/prebuilt/root modules_install
	+@$(MAKE) --no-print-directory install-tools install-providers DESTDIR=$(BUILD)/prebuilt/root
	@cd $(BUILD)/prebuilt/root && file=../nhca-$$(ls lib/modules)-$$(uname -m).tar.gz && \
		rm -f lib/modules/*/modules.* && tar --owner=0 --group=0 --mode=u+rwX,go=rX -czf $$file * && \
		realpath $$file
	@rm -rf $(BUILD)/prebuilt/root

# Build in a copy, because dpkg-buildpackage writes its results to the folder above the source.
# With RDMA_CORE_SRCS there is one package more, nhca-providers. The variables of this make are not for the build in the
# copy.
deb:	## build Debian packages for this release in BUILD/deb; RDMA_CORE_SRC= is its rdma-core's source
	@dpkg-checkbuilddeps || { \
		echo "make: packages are missing; 'apt-get build-dep ./' installs them" >&2; exit 1; }
	rm -rf $(BUILD)/deb
	mkdir -p $(BUILD)/deb/nhca/build
	tar -cf - $(DEB_PARTS) | tar -C $(BUILD)/deb/nhca -xf -
	ln -s $(BUILD)/src $(BUILD)/deb/nhca/build/src
	cd $(BUILD)/deb/nhca && env -u BUILD -u MAKEFLAGS RDMA_CORE_SRC='$(abspath $(RDMA_CORE_SRC))' \
		RDMA_CORE_SRCS='$(abspath $(RDMA_CORE_SRCS))' dpkg-buildpackage --build=binary --unsigned-changes \
		$(if $(RDMA_CORE_SRCS),--build-profiles=pkg.nhca.providers)
	rm -rf $(BUILD)/deb/nhca
	@ls $(BUILD)/deb/*.deb

selftests: $(PROGRAMS)	## build the test programs in C, which link with the provider and the messages library

deps:	## install the Debian packages that builds and tests need (root or sudo)
	@tools/testing/deps

demo: deps	## start two guests with nhca0 each and run three common RDMA programs between them
	@tools/testing/demo

check: deps	## run all tests except those of check-long; ends with "N passed, N failed, N skipped"
	@tools/testing/check

check-long: deps	## run all tests, also those that take long
	@tools/testing/check --tier long

check-debug: deps	## run the tests in guests on a kernel with KASAN, lockdep and kmemleak
	@tools/testing/check --kernel debug

kunit: deps	## run the KUnit suites on user-mode Linux
	@tools/testing/kunit/run

bench: deps	## measure nhca, rdma_rxe, siw and TCP in guests
	@tools/testing/bench/bench run

pictures:	## draw the pictures of the README and the book again (graphviz, gnuplot-nox)
	@Documentation/pictures/draw

style:	## check the style of sources, scripts, pages and commit titles
	@tools/testing/style

clean:	## remove all files that were compiled from this checkout
	rm -rf $(BUILD)/deb $(BUILD)/tools $(BUILD)/userspace $(BUILD)/include $(BUILD)/selftests $(BUILD)/testlib \
		$(BUILD)/lab/builds
	find $(DRIVER) \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' -o -name '.*.cmd' \
		-o -name modules.order -o -name Module.symvers \) -delete

distclean: clean	## remove everything that is not source, also guest images
	rm -rf $(BUILD)

help:	## print this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

# Programs use the headers of this checkout, and its libraries if they were built here, else the installed ones.
# With --as-needed only programs that call a library need it at run time.
$(BUILD)/include/infiniband/%.h: userspace/libnhca/%.h
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/include/infiniband/%.h: userspace/libnhcamsg/%.h
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/tools/%: tools/%.c
	@mkdir -p $(@D)
	$(CC) -O2 -g -Wall -Wextra $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $<

$(STORE): $(wildcard tools/nhca-store/*.[ch]) $(BUILD)/include/infiniband/nhcadv_direct.h
	@mkdir -p $(@D)
	$(CC) -O2 -g -Wall -Wextra -I$(BUILD)/include -I$(BUILD)/userspace/include $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) \
		-o $@ $(filter %.c,$^) -L$(BUILD)/userspace/lib -lrdmacm -libverbs -luring -lpthread -ldl

vpath %.c $(PROGRAM_FOLDERS)
# Names of a program must not replace those of shared libraries, such as functions of libc.
TEST_CC = $(CC) -O2 -g -Wall -Wextra -fvisibility=hidden -I$(BUILD)/include -Iinclude/uapi \
	-Iuserspace/libnhca -I$(SELFTESTS)/lib
TEST_HEADERS := $(BUILD)/include/infiniband/nhcadv.h $(BUILD)/include/infiniband/nhcadv_completion.h \
	$(BUILD)/include/infiniband/nhcadv_direct.h $(BUILD)/include/infiniband/nhcadv_half.h \
	$(BUILD)/include/infiniband/nhcadv_accumulate.h \
	$(BUILD)/include/infiniband/nhcadv_reg_cache.h \
	$(BUILD)/include/infiniband/nhcadv_msg.h \
	$(wildcard $(SELFTESTS)/*/*.h tools/testing/bench/*.h include/uapi/rdma/*.h)

$(BUILD)/testlib/%.o: $(SELFTESTS)/lib/%.c $(TEST_HEADERS)
	@mkdir -p $(@D)
	$(TEST_CC) -c -o $@ $<

$(TEST_LIB): $(patsubst $(SELFTESTS)/lib/%.c,$(BUILD)/testlib/%.o,$(wildcard $(SELFTESTS)/lib/*.c))
	rm -f $@
	$(AR) rcs $@ $^

.SECONDEXPANSION:
$(BUILD)/selftests/%: %.c $$(addsuffix .c,$$(PARTS_$$*)) $(TEST_HEADERS) $(TEST_LIB)
	@mkdir -p $(@D)
	$(TEST_CC) -o $@ $(filter %.c,$^) $(TEST_LIB) \
		-L$(BUILD)/userspace/lib -L$(BUILD)/userspace/libnhcamsg -Wl,--as-needed -lnhcamsg -lnhca \
		-libverbs -lrdmacm -lpthread

$(PRELOADS:%=$(BUILD)/selftests/%.so): $(BUILD)/selftests/%.so: %.c
	@mkdir -p $(@D)
	$(TEST_CC) -fvisibility=default -shared -fPIC -o $@ $< -ldl

# Files that the packages are built from
DEB_PARTS := Makefile dkms.conf debian drivers include userspace README.md Documentation \
	tools/wireshark $(TOOLS:%=tools/%)

.PHONY: kernel-headers root
kernel-headers:
	@test -e $(KDIR)/Makefile || { echo "make: $(KDIR) is not a kernel build tree:" \
		"install linux-headers-$(KVERSION), or give KDIR=" >&2; exit 1; }
root:
	@test "$$(id -u)" = 0 || { echo "make: installing needs root: sudo make install" >&2; exit 1; }
