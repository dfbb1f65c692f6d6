// One file on its way to a bucket.
import { send, sendXml } from '../lib/api.js'
import { eachAtOnce } from '../lib/below.js'
import { signal } from '../lib/html.js'
import { base64OfHex } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { sha256 } from '../lib/signer.js'
import { element } from '../lib/xml.js'
import { forgetUpload, keepUpload } from './kept.js'
import { sendBytes } from './send-bytes.js'

const MiB = 1024 * 1024
/** Files of this size and more are sent in parts. */
const IN_PARTS = 16 * MiB
const PART = 8 * MiB
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html */
const MAX_PARTS = 10_000
const PARTS_AT_ONCE = 3
const LONGEST_PAUSE_MS = 15_000

export class Upload {
  #abort
  #parts = new Map()
  #sending = new Map()

  /**
   * @param file a File; @param replace false leaves an object alone that is there already
   * @param kept what `keepUpload` has kept of an upload in parts that this one continues
   */
  constructor({ file, bucket, key, kept, replace = kept?.replace ?? true }) {
    this.file = file
    this.bucket = bucket
    this.key = key
    this.replace = replace
    this.kept = kept
    /** waiting, running, retrying, paused, skipped, failed or done */
    this.state = signal('waiting')
    this.sent = signal(0)
    this.error = signal(undefined)
  }

  /** Runs until the file is stored, is refused, or is paused. A server that does not answer is asked again. Never rejects. */
  async run() {
    this.#abort = new AbortController()
    const { signal: stop } = this.#abort
    this.error.value = undefined
    for (let attempt = 0; ; attempt++) {
      this.state.value = attempt === 0 ? 'running' : 'retrying'
      try {
        await (this.file.size < IN_PARTS ? this.#whole(stop) : this.#inParts(stop))
        this.sent.value = this.file.size
        this.state.value = 'done'
        return
      } catch (error) {
        if (stop.aborted) return
        if (!this.replace && error.code === 'PreconditionFailed') {
          await this.#discard()
          this.state.value = 'skipped'
          return
        }
        this.error.value = error
        if (!mayPass(error)) {
          this.state.value = 'failed'
          return
        }
        this.state.value = 'retrying'
        await pause(Math.min(1000 * 2 ** attempt, LONGEST_PAUSE_MS), stop)
        if (stop.aborted) return
      }
    }
  }

  pause() {
    this.state.value = 'paused'
    this.#abort?.abort()
  }

  /** Ends it for good. Parts that the server has are removed. */
  async cancel() {
    this.pause()
    await this.#discard()
  }

  async #discard() {
    if (!this.kept) return
    const { uploadId } = this.kept
    await send(client(), { method: 'DELETE', bucket: this.bucket, key: this.key, query: { uploadId } }).catch(() => {})
    await forgetUpload(uploadId)
  }

  async #whole(stop) {
    const bytes = await this.file.arrayBuffer()
    const headers = { ...this.#type(), ...this.#condition() }
    const request = { bucket: this.bucket, key: this.key, headers }
    await sendBytes(client(), request, bytes, { onProgress: (sent) => (this.sent.value = sent), signal: stop })
  }

  async #inParts(stop) {
    if (!this.replace) await this.#refuseExisting(stop)
    if (this.kept && this.#parts.size === 0) await this.#findParts(stop)
    if (!this.kept) await this.#begin(stop)
    const { uploadId, partSize } = this.kept
    const place = { bucket: this.bucket, key: this.key }
    const count = Math.ceil(this.file.size / partSize)
    const missing = Array.from({ length: count }, (_, i) => i + 1).filter((number) => !this.#parts.has(number))
    this.#count()
    await eachAtOnce(missing, PARTS_AT_ONCE, async (number) => {
      const bytes = await this.#slice(number)
      const hash = await sha256(bytes)
      const checksum = base64OfHex(hash)
      const request = {
        ...place,
        query: { partNumber: number, uploadId },
        headers: { 'x-amz-checksum-sha256': checksum },
      }
      const onProgress = (sent) => {
        this.#sending.set(number, sent)
        this.#count()
      }
      try {
        const headers = await sendBytes(client(), request, bytes, { hash, onProgress, signal: stop })
        this.#parts.set(number, { etag: headers.get('etag'), checksum, size: bytes.byteLength })
      } finally {
        this.#sending.delete(number)
        this.#count()
      }
    })
    const parts = [...this.#parts].sort(([one], [other]) => one - other)
    const body = element(
      'CompleteMultipartUpload',
      parts.map(([number, { etag, checksum }]) =>
        element('Part', [element('PartNumber', number), element('ETag', etag), element('ChecksumSHA256', checksum)]),
      ),
    )
    const headers = { 'content-type': 'application/xml', ...this.#condition() }
    await sendXml(client(), { method: 'POST', ...place, query: { uploadId }, headers, body, signal: stop })
    await forgetUpload(uploadId)
  }

  async #begin(stop) {
    const headers = { ...this.#type(), 'x-amz-checksum-algorithm': 'SHA256' }
    const request = {
      method: 'POST',
      bucket: this.bucket,
      key: this.key,
      query: { uploads: '' },
      headers,
      signal: stop,
    }
    const root = await sendXml(client(), request)
    const { name, size, lastModified } = this.file
    this.kept = {
      uploadId: root.get('UploadId'),
      endpoint: client().endpoint,
      ...{ bucket: this.bucket, key: this.key, replace: this.replace, name, size, lastModified },
      partSize: Math.max(PART, Math.ceil(size / MAX_PARTS / MiB) * MiB),
    }
    await keepUpload(this.kept)
  }

  /** Takes the parts that the server has, if they are those of the file. Begins anew if the server has forgotten them. */
  async #findParts(stop) {
    const { uploadId, partSize } = this.kept
    let marker
    do {
      const query = { uploadId, 'part-number-marker': marker }
      const root = await sendXml(client(), { bucket: this.bucket, key: this.key, query, signal: stop }).catch(
        (error) => {
          if (error.code !== 'NoSuchUpload') throw error
        },
      )
      if (root === undefined) {
        await forgetUpload(uploadId)
        this.kept = undefined
        return
      }
      for (const part of root.all('Part')) {
        const number = Number(part.get('PartNumber'))
        if ((number - 1) * partSize >= this.file.size) continue
        const bytes = await this.#slice(number)
        const checksum = base64OfHex(await sha256(bytes))
        if (part.get('ChecksumSHA256') !== checksum || Number(part.get('Size')) !== bytes.byteLength) continue
        this.#parts.set(number, { etag: part.get('ETag'), checksum, size: bytes.byteLength })
        this.#count()
        stop.throwIfAborted()
      }
      marker = root.get('IsTruncated') === 'true' ? root.get('NextPartNumberMarker') : undefined
    } while (marker !== undefined)
  }

  async #refuseExisting(stop) {
    const found = await send(client(), { method: 'HEAD', bucket: this.bucket, key: this.key, signal: stop }).catch(
      (error) => {
        if (error.status !== 404) throw error
      },
    )
    if (found) throw Object.assign(new Error('The object is there already.'), { code: 'PreconditionFailed' })
  }

  #slice(number) {
    const { partSize } = this.kept
    return this.file.slice((number - 1) * partSize, number * partSize).arrayBuffer()
  }

  #count() {
    let sent = 0
    for (const { size } of this.#parts.values()) sent += size
    for (const bytes of this.#sending.values()) sent += bytes
    this.sent.value = sent
  }

  /** Only a type that the browser knows by the name; the server has one for the others. */
  #type() {
    return this.file.type ? { 'content-type': this.file.type } : {}
  }

  #condition() {
    return this.replace ? {} : { 'if-none-match': '*' }
  }
}

function client() {
  if (session.value === null) throw new Error('Nobody is signed in.')
  return session.value
}

/** True for what a later attempt may not meet: no answer, an overloaded server, or one that has no gateway now. */
function mayPass({ code, status }) {
  return code === 'NetworkError' || code === 'OperationAborted' || (status >= 500 && status !== 501) || status === 429
}

function pause(ms, stop) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    stop.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
