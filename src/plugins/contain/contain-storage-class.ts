import type { AdmittedWrite, RestoreOutcome } from '../../api/archive.js'
import type { StorageClass } from '../../api/context.js'
import { checkHeaders } from './check-reply.js'
import { contained, type Deadlines } from './contained.js'

/**
 * Contains the callbacks of a plugin's storage class: an error other than an S3Error, a timeout or an invalid result
 * becomes an InternalError that names the callback.
 */
export function containStorageClass(plugin: string, offered: StorageClass, deadlines: Deadlines): StorageClass {
  const { name, action, currentOnly, admit, restore, missed } = offered
  const about = (callback: string) => ({
    plugin,
    work: `${callback} of the storage class ${name}`,
    ms: deadlines.pluginDeadlineMs,
  })
  const guardWrite = (write: AdmittedWrite): AdmittedWrite => ({
    archive: write.archive,
    ...(write.headers && { headers: write.headers }),
    ...(write.repeats && { repeats: write.repeats }),
    stored: (object) => contained({ ...about('stored'), check: checkReported }, () => write.stored(object)),
    dropped: () => contained(about('dropped'), () => write.dropped()),
  })
  /** A write that is admitted too late, or wrongly, does not happen. */
  const givenUp = (late: AdmittedWrite) => guardWrite(late).dropped()
  return {
    name,
    action,
    ...(currentOnly && { currentOnly }),
    transition: (object) => contained(about('transition'), () => offered.transition(object)),
    ...(admit && {
      async admit(write, context) {
        const how = { ...about('admit'), check: checkAdmitted, givenUp }
        return guardWrite(await contained(how, () => admit.call(offered, write, context)))
      },
    }),
    ...(restore && {
      restore: (object, order, context) =>
        contained({ ...about('restore'), check: checkRestored }, () => restore.call(offered, object, order, context)),
    }),
    ...(missed && {
      missed: (object, context) => contained(about('missed'), () => missed.call(offered, object, context)),
    }),
  }
}

function checkReported(headers: unknown): void {
  checkHeaders(headers, undefined)
}

function checkAdmitted(admitted: AdmittedWrite): void {
  const { archive, headers = {}, stored, dropped } = admitted ?? {}
  if (typeof archive !== 'object' || typeof stored !== 'function' || typeof dropped !== 'function')
    throw new TypeError('it admitted with a value that is not an AdmittedWrite')
  checkHeaders(headers, undefined)
}

function checkRestored(outcome: RestoreOutcome): void {
  const { status, headers = {} } = outcome ?? {}
  if (status !== 200 && status !== 202) throw new TypeError(`it answered with the status ${status}, not 200 or 202`)
  checkHeaders(headers, undefined)
}
