// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the targets to which the program lets this endpoint send, as source of moves.
 *
 * Each port allows each target of its own address family.  A port needs an address handle for this,
 * which the kernel creates only while it has a route.  Without a route, the port tries again after
 * a delay that doubles up to 640 ms.  The address handle is kept until the target is revoked, so
 * that neither a revocation nor a new channel needs a route.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msg.h"

#define TARGET_PAUSE	(10 * MS)	/* delay before a port tries a target again */
#define TARGET_TRIES	6		/* maximum doublings of that delay: 640 ms */

/**
 * struct msg_target - an address that the program allows
 * @node:       in nhcadv_msg_ep.targets
 * @gid:        the address
 * @at:         state at each port
 * @at.ah:      address handle, or NULL
 * @at.due:     time of the next try
 * @at.channel: the channel that allows the target: msg_port.recoveries, which identifies a channel
 *              of the port; 0: none
 * @at.tries:   tries so far
 */
struct msg_target {
	struct list_node node;
	union ibv_gid gid;
	struct {
		struct msg_ah *ah;
		uint64_t due;
		uint32_t channel;
		uint32_t tries;
	} at[NHCADV_MSG_MAX_PATHS];
};

/* Try to allow a target at port @p.  Return: time of the next try; NEVER: none is needed */
static uint64_t apply(struct nhcadv_msg_ep *ep, struct msg_target *target, uint32_t p)
{
	struct msg_port *port = ep->ports[p];
	uint32_t tries = target->at[p].tries;

	if (!port->moves || !msg_same_family(&port->gid, &target->gid) ||
	    target->at[p].channel == port->recoveries)
		return NEVER;
	if (ep->now < target->at[p].due)
		return target->at[p].due;
	if (!target->at[p].ah)
		target->at[p].ah = port_ah(port, &target->gid);
	if (target->at[p].ah && !port_allow(port, target->at[p].ah)) {
		target->at[p].channel = port->recoveries;
		target->at[p].tries = 0;
		target->at[p].due = 0;
		return NEVER;
	}
	target->at[p].due = ep->now + (TARGET_PAUSE << min_t(uint32_t, tries, TARGET_TRIES));
	target->at[p].tries = tries + 1;
	return target->at[p].due;
}

uint64_t msg_targets_apply(struct nhcadv_msg_ep *ep)
{
	struct msg_target *target;
	uint32_t p;

	if (ep->now < ep->targets_due)
		return ep->targets_due;
	ep->targets_due = NEVER;
	list_for_each(&ep->targets, target, node)
		for (p = 0; p < ep->num_ports; p++)
			if (ep->ports[p]->open)
				ep->targets_due = min(ep->targets_due, apply(ep, target, p));
	return ep->targets_due;
}

static void target_free(struct nhcadv_msg_ep *ep, struct msg_target *target)
{
	uint32_t p;

	for (p = 0; p < ep->num_ports; p++)
		port_ah_free(target->at[p].ah);
	free(target);
}

void msg_targets_free(struct nhcadv_msg_ep *ep)
{
	struct msg_target *target;

	while ((target = list_pop(&ep->targets, struct msg_target, node)))
		target_free(ep, target);
}

static struct msg_target *target_find(struct list_head *list, const union ibv_gid *gid)
{
	struct msg_target *target;

	list_for_each(list, target, node)
		if (!memcmp(&target->gid, gid, sizeof(*gid)))
			return target;
	return NULL;
}

bool msg_ep_has_moves(const struct nhcadv_msg_ep *ep)
{
	uint32_t i;

	for (i = 0; i < ep->num_ports; i++)
		if (ep->ports[i]->moves)
			return true;
	return false;
}

/* Allow all new addresses, or none.  Return: 0, ENOSPC or ENOMEM */
static int add(struct nhcadv_msg_ep *ep, const struct msg_address *address)
{
	struct msg_target *target;
	struct list_head fresh;
	uint32_t i, n = 0;
	int err = 0;

	list_head_init(&fresh);
	list_for_each(&ep->targets, target, node)
		n++;
	for (i = 0; i < address->num_paths && !err; i++) {
		if (target_find(&ep->targets, &address->paths[i].gid) ||
		    target_find(&fresh, &address->paths[i].gid))
			continue;
		target = n++ < NHCADV_MAX_TARGETS ? calloc(1, sizeof(*target)) : NULL;
		if (target) {
			target->gid = address->paths[i].gid;
			list_add_tail(&fresh, &target->node);
		} else {
			err = n > NHCADV_MAX_TARGETS ? ENOSPC : ENOMEM;
		}
	}
	while ((target = list_pop(&fresh, struct msg_target, node)))
		if (err)
			free(target);
		else
			list_add_tail(&ep->targets, &target->node);
	return err;
}

int nhcadv_msg_allow_target(struct nhcadv_msg_ep *ep, const void *bytes, size_t size)
{
	struct msg_address address;
	int err;

	err = msg_address_unpack(&address, bytes, size);
	if (err)
		return err;
	if (!msg_ep_has_moves(ep))
		return EOPNOTSUPP;
	msg_ep_lock(ep);
	err = add(ep, &address);
	ep->now = msg_clock();
	ep->targets_due = 0;
	msg_targets_apply(ep);
	msg_ep_unlock(ep);
	return err;
}

int nhcadv_msg_revoke_target(struct nhcadv_msg_ep *ep, const void *bytes, size_t size)
{
	struct msg_address address;
	struct msg_target *target;
	int err, found = ENOENT;
	uint32_t i, p;

	err = msg_address_unpack(&address, bytes, size);
	if (err)
		return err;
	msg_ep_lock(ep);
	ep->now = msg_clock();
	for (i = 0; i < address.num_paths; i++) {
		target = target_find(&ep->targets, &address.paths[i].gid);
		if (!target)
			continue;
		found = 0;
		list_del(&target->node);
		for (p = 0; p < ep->num_ports; p++)
			if (target->at[p].channel == ep->ports[p]->recoveries)
				port_revoke(ep->ports[p], target->at[p].ah);
		target_free(ep, target);
	}
	/* If the kernel has not revoked a target, its channel is broken: close it before return. */
	err = msg_ports_close_broken(ep);
	msg_ep_unlock(ep);
	return err ? err : found;
}
