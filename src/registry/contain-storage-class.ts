import { blame } from './blame.js'
import { withinDeadline } from './deadline.js'
import type { AdmittedWrite, StorageClass } from './storage-class.js'

/** A plugin's storage class with its callbacks fenced in: one that fails other than with an S3Error, or takes too long, is an InternalError that names it. */
export function containStorageClass(plugin: string, offered: StorageClass, deadlineMs: number): StorageClass {
  /** `givenUp` gets what comes too late. */
  async function guard<T>(callback: string, call: () => Promise<T>, givenUp?: (late: T) => void): Promise<T> {
    const work = (async () => call())()
    try {
      return await withinDeadline(work, deadlineMs)
    } catch (thrown) {
      work.then(givenUp).catch(() => {})
      throw blame(thrown, plugin, `${callback} of the storage class ${offered.name}`)
    }
  }

  const guardWrite = (write: AdmittedWrite): AdmittedWrite => ({
    archive: write.archive,
    stored: (object) => guard('stored', () => write.stored(object)),
    dropped: () => guard('dropped', () => write.dropped()),
  })

  const { admit, restore } = offered
  return {
    name: offered.name,
    transition: (object) => guard('transition', () => offered.transition(object)),
    ...(admit && {
      admit: async (write, context) =>
        guardWrite(
          await guard(
            'admit',
            () => admit.call(offered, write, context),
            (late) => guardWrite(late).dropped(),
          ),
        ),
    }),
    ...(restore && {
      restore: (object, order, context) => guard('restore', () => restore.call(offered, object, order, context)),
    }),
  }
}
