import { setTimeout as sleep } from 'node:timers/promises'
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { MiB } from '../../support/content/content.js'

/** Pause of each client before its next object, ms: more requests of the same kind show nothing more. */
const PAUSE_MS = 200
const LARGE = Buffer.alloc(MiB, 'large')
const PART = Buffer.alloc(5 * MiB, 'part')

/** Clients that read and write, one request after the other each, with the retries that the SDK makes by default. */
export class MixedLoad {
  /** Requests that have succeeded. */
  done = 0
  /** Requests that have failed, or that had a wrong answer. */
  readonly failures: string[] = []
  readonly #clients: Promise<unknown>[]
  #stopped = false

  constructor(s3: S3Client, bucket: string, clients = 4) {
    this.#clients = Array.from({ length: clients }, (_, i) => this.#client(s3, bucket, i))
  }

  /** Lets the requests in progress end. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#clients)
  }

  async #client(s3: S3Client, Bucket: string, client: number): Promise<void> {
    for (let turn = 0; !this.#stopped; turn++) {
      const at = { Bucket, Key: `client-${client}/${turn}` }
      const Body = turn % 3 === 0 ? LARGE : Buffer.from(`${client} ${turn}`)
      await this.#try('PutObject', () => s3.send(new PutObjectCommand({ ...at, Body })))
      await this.#try('GetObject', async () => {
        const got = await s3.send(new GetObjectCommand(at))
        if (!Body.equals((await got.Body?.transformToByteArray()) ?? Buffer.of())) throw new Error('other bytes')
      })
      await this.#try('ListObjectsV2', async () => {
        const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: at.Key }))
        if (Contents[0]?.Key !== at.Key) throw new Error('the object is missing')
      })
      if (turn % 5 === client) await this.#upload(s3, { Bucket, Key: `client-${client}/upload-${turn}` })
      await this.#try('DeleteObject', () => s3.send(new DeleteObjectCommand(at)))
      await sleep(PAUSE_MS)
    }
  }

  #upload(s3: S3Client, at: { Bucket: string; Key: string }): Promise<void> {
    return this.#try('a multipart upload', async () => {
      const { UploadId } = await s3.send(new CreateMultipartUploadCommand(at))
      const Parts: { PartNumber: number; ETag: string | undefined }[] = []
      for (const [i, Body] of [PART, Buffer.from('end')].entries()) {
        const PartNumber = i + 1
        const { ETag } = await s3.send(new UploadPartCommand({ ...at, UploadId, PartNumber, Body }))
        Parts.push({ PartNumber, ETag })
      }
      await s3.send(new CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload: { Parts } }))
    })
  }

  async #try(what: string, run: () => Promise<unknown>): Promise<void> {
    try {
      await run()
      this.done++
    } catch (error) {
      this.failures.push(`${what}: ${error}`)
    }
  }
}
