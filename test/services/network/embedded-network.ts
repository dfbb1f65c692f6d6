import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { silentLog } from '../../../services/log.js'
import type { ProviderTerms } from '../../../services/network/embedded/catalogue.js'
import {
  type EmbeddedNetwork,
  type EmbeddedNetworkOptions,
  openEmbeddedNetwork,
} from '../../../services/network/embedded/embedded-network.js'
import type { DealFile, DealRequest, DealTerms, Network, PackedFile } from '../../../services/network/network.js'
import { createCommit, createReadFromCar, pack } from '../../../services/network/pack/index.js'
import { databaseOf } from '../engine.js'

export const provider: ProviderTerms = {
  minerId: 't02000',
  location: 'Europe',
  price: '0.001',
  verifiedPrice: '',
  minPieceSize: 512,
  maxPieceSize: 2 ** 22,
  offlineDealAvailable: false,
  score: 50,
  contactInfo: 'deals@example.com',
  acceptEpochs: 2,
  publishEpochs: 3,
  sealEpochs: 5,
}

export const other: ProviderTerms = { ...provider, minerId: 't02001', verifiedPrice: '0', minPieceSize: 128 }

export const terms: DealTerms = {
  minerId: provider.minerId,
  price: '0.5',
  duration: 518_400,
  verifiedDeal: false,
  fastRetrieval: true,
}

const commit = createCommit()

/** Opens a network with a virtual clock, stopped with the test. */
export async function open(
  t: Pick<Test, 'teardown'>,
  folder: string,
  options: Partial<EmbeddedNetworkOptions> = {},
): Promise<EmbeddedNetwork> {
  const network = await openEmbeddedNetwork({
    folder,
    database: await databaseOf(folder),
    pack,
    commit,
    readFromCar: createReadFromCar(),
    log: silentLog,
    virtual: true,
    providers: [provider, other],
    ...options,
  })
  t.teardown(() => network.stop())
  return network
}

/** Bytes that look like chance, the same for the same name. */
export function content(name: string, size: number): Buffer {
  const block = createHash('sha512').update(name).digest()
  return Buffer.alloc(size, block)
}

async function* files(all: Readonly<Record<string, Buffer>>): AsyncGenerator<DealFile> {
  for (const [name, bytes] of Object.entries(all)) {
    yield {
      path: name.split('/'),
      size: bytes.length,
      async *content() {
        for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000)
      },
    }
  }
}

export interface Asked extends DealRequest {
  /** What `onFile` was told, by path. */
  readonly packed: Map<string, PackedFile>
}

export function ask(
  reference: string,
  all: Readonly<Record<string, Buffer>> = { file: content(reference, 3000) },
  more: Partial<DealRequest> = {},
): Asked {
  const packed = new Map<string, PackedFile>()
  return {
    reference,
    terms,
    files: () => files(all),
    bytesTotal: Object.values(all).reduce((sum, { length }) => sum + length, 0),
    onFile: (file) => void packed.set(file.path.join('/'), file),
    ...more,
    packed,
  }
}

/** One of the files that went into a deal. */
export function packedFile({ packed }: Asked, path = 'file'): PackedFile {
  const file = packed.get(path)
  if (file === undefined) throw new Error(`${path} was not packed.`)
  return file
}

export const bytesOf = (network: Network, dealCid: string, file: PackedFile): Promise<Buffer> =>
  buffer(network.retrieve(dealCid, file))

/** Names of the CARs that a provider has. */
export function cars(folder: string, minerId = provider.minerId): string[] {
  return readdirSync(join(folder, 'providers', minerId))
}

export function staged(folder: string): string[] {
  return existsSync(join(folder, 'staging')) ? readdirSync(join(folder, 'staging')) : []
}
