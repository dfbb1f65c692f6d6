import type { CID } from 'multiformats/cid'
import { z } from 'zod'
import { parseJson } from '../../../common/json.js'
import { type Car, NetworkError } from '../network.js'
import { type BlockSource, digestOf, hashesTo, MAX_BLOCK_BYTES, notRetrievable } from '../pack/dag/unixfs.js'
import { fileForm, type KuboClient } from './kubo-client.js'
import { KuboError, messageOf } from './kubo-errors.js'

const identity = z.object({ ID: z.string().min(1).max(128), Addresses: z.array(z.string()).nullish() })
const version = z.object({ Version: z.string() })
const space = z.object({ RepoSize: z.number().nonnegative(), StorageMax: z.number().nonnegative() })
const pins = z.object({ Keys: z.record(z.string(), z.unknown()).nullish() })
const setting = z.object({ Value: z.union([z.string(), z.array(z.string())]).nullish() })
const importedRoot = z.object({
  Root: z.object({ Cid: z.object({ '/': z.string() }), PinErrorMsg: z.string().nullish() }),
})

export interface NodeIdentity {
  readonly peerId: string
  /** Multiaddresses. */
  readonly addresses: readonly string[]
}

/** The commands of a Kubo node that deals need. They throw the errors of `KuboClient`. */
export class KuboNode {
  readonly #client: KuboClient
  readonly #pinMs: number

  /** @param pinMs time that the node may take to pin an import, because it visits all blocks once more */
  constructor(client: KuboClient, pinMs: number) {
    this.#client = client
    this.#pinMs = pinMs
  }

  async identity(signal?: AbortSignal): Promise<NodeIdentity> {
    const { ID, Addresses } = await this.#ask('id', {}, identity, signal)
    return { peerId: ID, addresses: Addresses ?? [] }
  }

  async version(signal?: AbortSignal): Promise<string> {
    return (await this.#ask('version', {}, version, signal)).Version
  }

  /** The first multiaddress of the node's HTTP gateway; undefined when it has none. */
  async gateway(signal?: AbortSignal): Promise<string | undefined> {
    const { Value } = await this.#ask('config', { arg: 'Addresses.Gateway' }, setting, signal)
    const [address] = [Value ?? []].flat()
    return address === '' ? undefined : address
  }

  /** Bytes that the node may still store by its own limit. */
  async room(signal?: AbortSignal): Promise<number> {
    const { RepoSize, StorageMax } = await this.#ask('repo/stat', { 'size-only': true }, space, signal)
    return Math.max(0, StorageMax - RepoSize)
  }

  /**
   * Sends all blocks of a CAR to the node, which pins the root. Rejects with KuboError when the node pins something
   * else, or nothing.
   * @param onSent called with the number of bytes of the CAR sent so far
   */
  async import({ file, size, dataCid }: Car, onSent: (bytes: number) => void, signal?: AbortSignal): Promise<void> {
    const query = { 'pin-roots': true, stats: false }
    const upload = { ...fileForm(file, size, onSent), answerMs: this.#pinMs }
    const answer = await this.#client.call('dag/import', query, signal, upload)
    const roots = new Map(rootsOf(answer).map(({ cid, failure }) => [cid, failure]))
    const failure = roots.get(dataCid)
    if (failure === undefined || roots.size !== 1) throw new KuboError('The node did not accept the CAR.')
    if (failure !== '') throw new KuboError(`The node could not pin the CAR: ${failure}`)
  }

  async isPinned(cid: string, signal?: AbortSignal): Promise<boolean> {
    try {
      const { Keys } = await this.#ask('pin/ls', { arg: cid, type: 'recursive' }, pins, signal)
      return Object.keys(Keys ?? {}).length > 0
    } catch (error) {
      if (isNotPinned(error)) return false
      throw error
    }
  }

  /** Unpins the root; does nothing when it is not pinned. */
  async unpin(cid: string, signal?: AbortSignal): Promise<void> {
    try {
      await this.#client.call('pin/rm', { arg: cid, recursive: true }, signal)
    } catch (error) {
      if (!isNotPinned(error)) throw error
    }
  }

  /** Bytes of a file, not verified. */
  cat(cid: string, signal?: AbortSignal): AsyncIterable<Uint8Array> {
    return this.#client.stream('cat', { arg: cid, progress: false }, signal)
  }

  blocks(signal?: AbortSignal): BlockSource {
    return {
      get: async (cid: CID) => {
        const digest = digestOf(cid)
        const block = await this.#client.bytes('block/get', { arg: cid.toString() }, MAX_BLOCK_BYTES, signal)
        if (!hashesTo(block, digest)) throw notRetrievable(`The node sent other bytes for the block ${cid}.`)
        return block
      },
    }
  }

  async #ask<T>(
    command: string,
    query: Readonly<Record<string, string | boolean>>,
    form: z.ZodType<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const text = await this.#client.call(command, query, signal)
    const answer = form.safeParse(parseJson(text))
    if (answer.success) return answer.data
    throw new NetworkError('Unavailable', `The Kubo node gave an unexpected answer to "${command}".`)
  }
}

/** Parses the lines of an answer: whether each root was pinned, and at the end sometimes an error. */
function rootsOf(answer: string): { readonly cid: string; readonly failure: string }[] {
  return answer
    .split('\n')
    .filter((line) => line.trim() !== '')
    .flatMap((line) => {
      const failure = messageOf(line)
      if (failure !== undefined) throw new KuboError(failure)
      const root = importedRoot.safeParse(parseJson(line))
      return root.success ? [{ cid: root.data.Root.Cid['/'], failure: root.data.Root.PinErrorMsg ?? '' }] : []
    })
}

function isNotPinned(error: unknown): boolean {
  return error instanceof KuboError && /\bnot pinned\b/.test(error.message)
}
