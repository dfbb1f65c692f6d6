import type { PluginHost, StorageClass } from 'dealgate/plugin'
import { COPY, type CopyInput } from './copy-job.js'

const NAME = 'SHELF'

/** Objects in this class have a second copy. Their bytes stay on the gateway, so that they can be read at any time. */
export function shelfClass(host: PluginHost): StorageClass {
  /** The job is recorded before the object is stored, and starts only once the object names it. */
  const hold = (bucket: string, key: string, accessKeyId: string) =>
    host.own.jobs.create<CopyInput>({
      kind: COPY,
      resource: `/${bucket}/${key}`,
      input: { bucket, key },
      accessKeyId,
      held: true,
    })
  return {
    name: NAME,
    action: COPY,
    async admit({ bucket, key, operation }, { caller }) {
      // CompleteMultipartUpload stores the object and is admitted separately.
      if (operation === 'CreateMultipartUpload')
        return { archive: { storageClass: NAME }, stored: async () => ({}), dropped: async () => {} }
      const job = await hold(bucket, key, caller?.identity.accessKeyId ?? '')
      return {
        archive: { storageClass: NAME, jobId: job.id },
        async stored() {
          await host.own.jobs.release(job.id)
          return { 'x-dealgate-job-id': job.id }
        },
        dropped: () => host.own.jobs.drop(job.id),
      }
    },
    async transition({ bucket, key, etag }) {
      const object = await host.own.store.find(bucket, key)
      if (!object || object.etag !== etag || object.archive?.storageClass === NAME) return false
      const job = await hold(bucket, key, '')
      const archive = { storageClass: NAME, jobId: job.id }
      const entered = await host.own.store.annotate(bucket, key, object.revision, (before) => ({
        ...before,
        ...archive,
      }))
      await (entered ? host.own.jobs.release(job.id) : host.own.jobs.drop(job.id))
      return entered
    },
  }
}
