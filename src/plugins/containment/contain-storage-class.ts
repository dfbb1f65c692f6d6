import { withinDeadline } from '../../common/deadline.js'
import type { AdmittedWrite, RestoreOutcome, StorageClass } from '../forms/storage-class.js'
import { blame } from './blame.js'
import { checkHeaders } from './check-reply.js'

/**
 * Contains the callbacks of a plugin's storage class: an error other than an S3Error, a timeout or an invalid result
 * becomes an InternalError that names the callback.
 */
export function containStorageClass(plugin: string, offered: StorageClass, deadlineMs: number): StorageClass {
  /** `check` throws for an invalid result; `givenUp` receives a result that comes too late. */
  async function guard<T>(
    callback: string,
    call: () => Promise<T>,
    { check, givenUp }: { check?: (result: T) => void; givenUp?: (late: T) => unknown } = {},
  ): Promise<T> {
    const work = (async () => call())()
    try {
      const result = await withinDeadline(work, deadlineMs)
      check?.(result)
      return result
    } catch (thrown) {
      work.then(givenUp).catch(() => {})
      throw blame(thrown, plugin, `${callback} of the storage class ${offered.name}`)
    }
  }

  const guardWrite = (write: AdmittedWrite): AdmittedWrite => ({
    archive: write.archive,
    ...(write.repeats && { repeats: write.repeats }),
    stored: (object) => guard('stored', () => write.stored(object), { check: (told) => checkHeaders(told, undefined) }),
    dropped: () => guard('dropped', () => write.dropped()),
  })

  const { admit, restore, missed } = offered
  return {
    name: offered.name,
    action: offered.action,
    transition: (object) => guard('transition', () => offered.transition(object)),
    ...(admit && {
      admit: async (write, context) => {
        const givenUp = (late: AdmittedWrite) => guardWrite(late).dropped()
        return guardWrite(
          await guard('admit', () => admit.call(offered, write, context), { check: checkAdmitted, givenUp }),
        )
      },
    }),
    ...(restore && {
      restore: (object, order, context) =>
        guard('restore', () => restore.call(offered, object, order, context), { check: checkRestored }),
    }),
    ...(missed && { missed: (object, context) => guard('missed', () => missed.call(offered, object, context)) }),
  }
}

function checkAdmitted(admitted: AdmittedWrite): void {
  const { archive, stored, dropped } = admitted ?? {}
  if (typeof archive !== 'object' || typeof stored !== 'function' || typeof dropped !== 'function')
    throw new TypeError('it admitted with a value that is not an AdmittedWrite')
}

function checkRestored(outcome: RestoreOutcome): void {
  const { status, headers = {} } = outcome ?? {}
  if (status !== 200 && status !== 202) throw new TypeError(`it answered with the status ${status}, not 200 or 202`)
  checkHeaders(headers, undefined)
}
