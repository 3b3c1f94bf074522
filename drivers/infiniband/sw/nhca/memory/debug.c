// SPDX-License-Identifier: GPL-2.0
/* debugfs files of memory/ in the module's directory, and the resource query of a region. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "mr.h"
#include "debug.h"

static int tables_show(struct seq_file *m, void *unused)
{
	struct nhca_tce_usage u;
	unsigned int t;

	seq_puts(m, "table page_size ranges entries leaf_kib\n");
	for (t = 0; t < NHCA_TCE_TABLES; t++) {
		nhca_tce_usage(t, &u);
		if (u.shift)
			seq_printf(m, "%5u %9lu %6llu %7llu %8llu\n", t, BIT(u.shift),
				   u.ranges, u.entries,
				   u.leaves * NHCA_TCE_LEAF_SIZE * sizeof(u64) >> 10);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tables);

static const char * const mkey_types[] = {
	[NHCA_MKEY_MR] = "region",
	[NHCA_MKEY_MW1] = "window-1",
	[NHCA_MKEY_MW2A] = "window-2A",
	[NHCA_MKEY_MW2B] = "window-2B",
};

static void key_show(struct nhca_mkey *mk, void *arg)
{
	struct seq_file *m = arg;

	spin_lock_bh(&mk->lock);
	seq_printf(m, "%08x %-9s %-6s", mk->key, mkey_types[mk->type],
		   mk->valid ? "open" : "closed");
	seq_printf(m, " %s pd %u", dev_name(&mk->pd->device->dev), mk->pd->res.id);
	if (mk->valid)
		seq_printf(m, " va %#llx length %llu access %#x", mk->va, mk->length,
			   mk->access);
	if (mk->valid && (mk->type == NHCA_MKEY_MW2A || mk->type == NHCA_MKEY_MW2B))
		seq_printf(m, " qp %#x", mk->qpn);
	spin_unlock_bh(&mk->lock);
	seq_putc(m, '\n');
}

static int keys_show(struct seq_file *m, void *unused)
{
	nhca_mkey_walk(key_show, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(keys);

static void rkey_ref_show(const struct nhca_rkey_ref *h, void *arg)
{
	seq_printf(arg, "%08x qp %#x pd %u %s\n", h->key, h->qpn, h->pd->res.id,
		   nhca_rkey_ref_valid(h) ? "valid" : "revoked");
}

static int rkey_refs_show(struct seq_file *m, void *unused)
{
	nhca_rkm_walk(rkey_ref_show, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rkey_refs);

void nhca_mr_dump(struct ib_mr *ibmr, struct nhca_res_mr *res)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	struct nhca_mkey *mk = &mr->mkey;

	spin_lock_bh(&mk->lock);
	*res = (struct nhca_res_mr) {
		.size = sizeof(*res),
		.kind = mr->kind,
		.valid = mk->valid,
		.access = mk->access,
		.bound_mws = atomic_read(&mr->windows),
		.page_shift = mr->tces.count ? mr->tces.shift : 0,
		.lkey = mk->key,
		.tces = mr->tces.count,
		.va = mk->va,
		.length = mk->length,
		.pvo = mr->pvo,
	};
	spin_unlock_bh(&mk->lock);
}

void nhca_memory_debug_init(struct dentry *dir)
{
	/* the files are removed with the directory */
	debugfs_create_file("tables", 0400, dir, NULL, &tables_fops);
	debugfs_create_file("keys", 0400, dir, NULL, &keys_fops);
	debugfs_create_file("rkey_refs", 0400, dir, NULL, &rkey_refs_fops);
}
