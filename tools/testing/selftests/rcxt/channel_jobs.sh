#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# purpose: another user's job has no access to the channels and memory of a job, on the same host or from another host
# tier: check
# lab: --nodes 2 --timeout 200
# lab one-host: --nodes 1 --timeout 200
# tier one-host: long
# lab debug: --nodes 2 --kernel debug --timeout 900
# tier debug: long

. "$LAB_SRC/selftests/lib/lib.sh"
. "$LAB_SRC/selftests/lib/node.sh"

# The unprivileged users of the test open these device nodes.
chmod 666 /dev/infiniband/uverbs*

before=$(resources "$RDMA_DEV")
command="channel_jobs -d $RDMA_DEV -g $(gid_index)"
pair "two jobs of two users" "$command" "$command $IP_1" 150
[ "$NODE" = "$NODES" ] && report_file "$LIB_TMP/client"
[ "$NODE" = 1 ] && grep '^# ' "$LIB_TMP/server"
resources_check "the device has as many objects as before on node $NODE" "$RDMA_DEV" "$before"
