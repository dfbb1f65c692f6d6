import { createHash } from 'node:crypto'
import { type PluginHost, type Records, renamedMember } from 'dealgate/plugin'

/** An upload that was made through this server. Plain JSON. */
export interface MadeFile {
  readonly jobId: string
  readonly uploadId: number
  readonly cid: string
  readonly wCid: string
  readonly url: string
  /** Name under which the service lists it. */
  readonly name: string
  readonly size: number
  readonly days: number
  readonly fileType: '0' | '1'
  /** In lower case; absent if it is not known. */
  readonly wallet?: string
  /** Status that the service stated at the upload. */
  readonly status?: string
  readonly accessKeyId: string
  /** ms since 1970. */
  readonly made: number
}

export interface MadeUpload extends MadeFile {
  readonly bucket: string
  readonly key: string
  /** Revision of the object that was uploaded. */
  readonly revision: string
  /** Creation time of the bucket, where the gateway tells it. */
  readonly birth?: string
}

/** A request for an upload, recorded before it is complete. */
export interface UploadAttempt {
  /** In lower case; absent if it is not known. */
  readonly wallet?: string
  readonly name: string
  readonly size: number
  /** Absent in records of former versions. */
  readonly days?: number
  readonly fileType?: '0' | '1'
  /** ms since 1970. */
  readonly sent: number
}

/** Ids of the jobs for uploads of an object, the oldest first; also of those that failed. */
interface OfObject {
  readonly jobIds: readonly string[]
}

/** Most uploads that are listed of one object. */
const MAX_OF_OBJECT = 1000

export class MadeUploads {
  readonly #made: Records<MadeUpload | MadeFile>
  readonly #ofObject: Records<OfObject>
  /** Ids of jobs by the number of their upload. */
  readonly #byNumber: Records<string>

  constructor({ state }: Pick<PluginHost, 'state'>) {
    this.#made = renamedMember(state.records('pay-made'), 'revision', 'stamp')
    this.#ofObject = state.records('pay-of-object')
    this.#byNumber = state.records('pay-by-number')
  }

  get(jobId: string): Promise<MadeFile | undefined> {
    return this.#made.get(jobId)
  }

  async objectOf(jobId: string): Promise<MadeUpload | undefined> {
    const made = await this.#made.get(jobId)
    return made && 'bucket' in made ? made : undefined
  }

  async isOfAnother(uploadId: number, jobId: string): Promise<boolean> {
    const owner = await this.#byNumber.get(String(uploadId))
    return owner !== undefined && owner !== jobId
  }

  /** Durable when it resolves; may be repeated. The record of the job comes last: if it is there, so is all else. */
  async remember(upload: MadeUpload | MadeFile): Promise<void> {
    const { jobId, uploadId } = upload
    await this.#byNumber.set(String(uploadId), jobId)
    if ('bucket' in upload) await this.requested(upload, jobId)
    await this.#made.set(jobId, upload)
  }

  /** Records that a job is to upload an object; may be repeated. */
  async requested({ bucket, key }: Pick<MadeUpload, 'bucket' | 'key'>, jobId: string): Promise<void> {
    await this.#ofObject.change(keyOf(bucket, key), (known) => {
      const jobIds = known?.jobIds ?? []
      return jobIds.includes(jobId) && known ? known : { jobIds: [...jobIds, jobId].slice(-MAX_OF_OBJECT) }
    })
  }

  /**
   * Uploads of an object of the present bucket, the newest first.
   * @param creationTime of the bucket, where the gateway tells it
   */
  async ofObject(bucket: string, key: string, creationTime: string | undefined): Promise<readonly MadeUpload[]> {
    const jobIds = await this.jobIdsOf(bucket, key)
    const uploads = await Promise.all([...jobIds].reverse().map((jobId) => this.objectOf(jobId)))
    return uploads.filter((upload) => upload !== undefined).filter((upload) => upload.birth === creationTime)
  }

  /**
   * The newest upload of each of many objects as it is now, in their order; reads the state twice.
   * @param creationTime as that of `ofObject`
   */
  async newestOf(
    objects: readonly { readonly bucket: string; readonly key: string; readonly revision: string }[],
    creationTime: string | undefined,
  ): Promise<(MadeUpload | undefined)[]> {
    const ofObjects = await this.#ofObject.getMany(objects.map(({ bucket, key }) => keyOf(bucket, key)))
    const ids = [...new Set(ofObjects.flatMap((one) => one?.jobIds ?? []))]
    const made = await this.#made.getMany(ids)
    const byId = new Map(ids.map((id, i) => [id, made[i]]))
    return objects.map(({ revision }, i) =>
      (ofObjects[i]?.jobIds ?? [])
        .map((id) => byId.get(id))
        .filter((upload): upload is MadeUpload => upload !== undefined && 'bucket' in upload)
        .findLast((upload) => upload.revision === revision && upload.birth === creationTime),
    )
  }

  /** Ids of the jobs for uploads of a key, the oldest first. */
  async jobIdsOf(bucket: string, key: string): Promise<readonly string[]> {
    return (await this.#ofObject.get(keyOf(bucket, key)))?.jobIds ?? []
  }

  /** All uploads, in no order. */
  async *all(): AsyncGenerator<MadeFile | MadeUpload, void> {
    for await (const [, upload] of this.#made.entries()) yield upload
  }
}

/** Hashed, because keys of S3 are longer than some stores accept. A bucket name holds no NUL. */
function keyOf(bucket: string, key: string): string {
  return createHash('sha256').update(`${bucket}\0${key}`).digest('base64url')
}
