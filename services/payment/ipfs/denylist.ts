import { readFileSync, statSync } from 'node:fs'
import { CID } from 'multiformats/cid'
import type { ServicesLog } from '../../log.js'

/** Largest list, bytes: half a million CIDs. */
const MAX_BYTES = 32 * 2 ** 20
/** Between two looks at whether the file has changed, ms. */
const LOOK_MS = 1000

/** A list of contents cannot be read. The message names the line. */
class DenylistMisuse extends Error {
  override readonly name = 'DenylistMisuse'
}

/**
 * Contents that the operator does not send or take, from a file with a line `/ipfs/<cid>` for each, as IPIP-383 has it
 * (https://specs.ipfs.tech/ipips/ipip-0383/). A CID stands for its multihash. The file is read again when it changes;
 * one that cannot be read then leaves the former list.
 */
export class Denylist {
  readonly #file: string
  readonly #log: ServicesLog
  #digests: ReadonlySet<string>
  #version: string
  #lookedAt = Date.now()

  /** Throws DenylistMisuse. */
  constructor(file: string, log: ServicesLog) {
    this.#file = file
    this.#log = log
    this.#version = versionOf(file)
    this.#digests = read(file)
  }

  has(cid: CID): boolean {
    if (Math.abs(Date.now() - this.#lookedAt) >= LOOK_MS) this.#look()
    return this.#digests.has(digestOf(cid))
  }

  #look(): void {
    this.#lookedAt = Date.now()
    try {
      const version = versionOf(this.#file)
      if (version === this.#version) return
      this.#version = version
      this.#digests = read(this.#file)
    } catch (err) {
      this.#log.error({ err }, 'The list of denied contents cannot be read. The former one is kept.')
    }
  }
}

function versionOf(file: string): string {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true })
    return [ino, size, mtimeNs].join()
  } catch (cause) {
    throw new DenylistMisuse(`The list of denied contents ${file} cannot be read.`, { cause })
  }
}

function read(file: string): ReadonlySet<string> {
  const text = readFileSync(file)
  if (text.length > MAX_BYTES) throw new DenylistMisuse(`The list ${file} has more than ${MAX_BYTES} bytes.`)
  const lines = text.toString('utf8').split(/\r?\n/)
  const digests = new Set<string>()
  // What is in front of this line describes the list.
  for (let n = lines.indexOf('---') + 1; n < lines.length; n++) {
    const line = (lines[n] ?? '').trim()
    if (line === '' || line.startsWith('#')) continue
    const [, cid = ''] = /^\/ipfs\/([A-Za-z0-9]+)(?:\/\*)?(?:\s.*)?$/.exec(line) ?? []
    digests.add(digestOf(parse(cid, `line ${n + 1} of ${file}`)))
  }
  return digests
}

function parse(text: string, place: string): CID {
  try {
    return CID.parse(text)
  } catch (cause) {
    throw new DenylistMisuse(`There is no content in ${place}: each line must be /ipfs/ and a CID.`, { cause })
  }
}

function digestOf({ multihash }: CID): string {
  return Buffer.from(multihash.bytes).toString('latin1')
}
