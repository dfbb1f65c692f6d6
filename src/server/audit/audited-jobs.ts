import type { Logger } from '../../common/log.js'
import type { Jobs } from '../../plugins/jobs/job.js'
import type { AuditLog } from './audit-log.js'

/** Records each job that is created: jobs are what spends money. */
export function auditedJobs<T extends Jobs>(jobs: T, audit: AuditLog, log: Logger): T {
  const create: Jobs['create'] = async (asked) => {
    const job = await jobs.create(asked)
    const entry = {
      time: new Date().toISOString(),
      action: `job ${asked.kind}`,
      accessKeyId: asked.accessKeyId || undefined,
      session: asked.session && `${asked.session.role}/${asked.session.name}`,
      resource: asked.resource,
      outcome: 'ok',
      jobId: job.id,
    }
    await audit.write(entry).catch((err) => log.error({ err, audit: entry }, 'the audit log cannot be written'))
    return job
  }
  return { ...jobs, create }
}
