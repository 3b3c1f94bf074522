// SPDX-License-Identifier: GPL-2.0
/* Initialization of memory/, in the order in which its parts depend on each other. */
#include "job.h"
#include "live.h"
#include "memory.h"
#include "mr.h"
#include "odp.h"
#include "rkm.h"
#include "tce.h"

int nhca_memory_init(void)
{
	int err;

	err = nhca_live_init();
	if (err)
		return err;
	err = nhca_tce_init();
	if (err)
		goto err_live;
	err = nhca_job_init();
	if (err)
		goto err_tce;
	err = nhca_rkm_init();
	if (err)
		goto err_job;
	err = nhca_mkey_init();
	if (err)
		goto err_rkm;
	err = nhca_mr_init();
	if (err)
		goto err_mkey;
	err = nhca_fault_init();
	if (err)
		goto err_mr;
	return 0;

err_mr:
	nhca_mr_exit();
err_mkey:
	nhca_mkey_exit();
err_rkm:
	nhca_rkm_exit();
err_job:
	nhca_job_exit();
err_tce:
	nhca_tce_exit();
err_live:
	nhca_live_exit_module();
	return err;
}

void nhca_memory_exit(void)
{
	nhca_fault_exit();
	nhca_mr_exit();
	nhca_mkey_exit();
	nhca_rkm_exit();
	nhca_job_exit();
	nhca_tce_exit();
	nhca_live_exit_module();
}
