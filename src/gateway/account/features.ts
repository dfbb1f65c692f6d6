import { unless } from '../../../common/errors/s3-error.js'
import type { GatewayFeatures } from '../../api/gateway-features.js'
import type { KnownStores } from '../../api/known-stores.js'
import type { BrandNames } from '../brand.js'
import type { RpcResult } from '../calls/rpc-sender.js'
import { nonsense } from '../errors.js'
import { CachedAnswer } from './cached-answer.js'
import type { Session } from './session.js'

const legacyFeatures: GatewayFeatures = Object.freeze({
  pagedListing: false,
  objectHead: false,
  exactRemove: false,
  anyKey: false,
  fixedBuckets: false,
  dealTokens: false,
  dealList: false,
  dealStatus: false,
  dealProviders: false,
  dealEviction: false,
  dealVerification: false,
  offlineDeals: false,
  writeFences: false,
  storeIds: false,
  uploadQuotas: false,
  bucketQuotas: false,
  bucketNumbers: false,
  objectRecords: false,
  objectChecksums: false,
  versions: false,
  locks: false,
})

/**
 * Time for which an answer of web.ServerInfo is cached, ms. An upgraded gateway is noticed without a restart of this
 * server.
 */
const VALID_MS = 5 * 60_000

/** Caches the features of the gateway for all accounts. */
export class FeatureCache {
  readonly #names: BrandNames
  readonly #cached: CachedAnswer<GatewayFeatures>

  constructor(names: BrandNames, now: () => number) {
    this.#names = names
    this.#cached = new CachedAnswer(VALID_MS, now)
  }

  /** What is known without a call. */
  get known(): GatewayFeatures | undefined {
    return this.#cached.valid
  }

  /** Throws S3Error only when the gateway could not be queried. */
  get(session: Session): Promise<GatewayFeatures> {
    return this.#cached.get(() => this.#query(session))
  }

  ask(session: Session): Promise<GatewayFeatures> {
    return this.#cached.renew(() => this.#query(session))
  }

  async #query(session: Session): Promise<GatewayFeatures> {
    const result = await serverInfo(session)
    return result ? readFeatures(result[this.#names.member('Features')]) : legacyFeatures
  }
}

/** Resolves undefined when the gateway does not know the method. */
function serverInfo(session: Session): Promise<RpcResult | undefined> {
  const info = session.call({ method: 'web.ServerInfo', params: {}, repeatable: true })
  return unless('NotImplemented', info, undefined)
}

function readFeatures(list: unknown): GatewayFeatures {
  const has = (name: string) => Array.isArray(list) && list.includes(name)
  // Expectations name the generation of the object found, so every way to look at an object has to return it.
  const writeFences = has('write-fences') && has('paged-listing') && has('object-head') && has('any-key')
  const versions = writeFences && has('exact-remove') && has('versions')
  return {
    pagedListing: has('paged-listing'),
    objectHead: has('object-head'),
    exactRemove: has('exact-remove'),
    anyKey: has('any-key'),
    fixedBuckets: has('fixed-creation-date'),
    dealTokens: has('deal-tokens'),
    dealList: has('deal-list'),
    dealStatus: has('deal-status'),
    dealProviders: has('deal-providers'),
    dealEviction: has('deal-eviction'),
    dealVerification: has('deal-verification'),
    offlineDeals: has('offline-deals'),
    writeFences,
    storeIds: has('state-epoch'),
    uploadQuotas: has('upload-quota'),
    bucketQuotas: has('bucket-quota'),
    bucketNumbers: has('bucket-numbers'),
    objectRecords: writeFences && has('object-records'),
    objectChecksums: has('paged-listing') && has('object-head') && has('object-checksums'),
    versions,
    locks: versions && has('locks'),
  }
}

interface KnownStoresDeps {
  readonly session: Session
  readonly features: FeatureCache
}

export function knownStores({ session, features }: KnownStoresDeps): KnownStores {
  async function ask(params: object) {
    if (!(await features.get(session)).storeIds) return undefined
    const { known, others, mark } = await session.call({ method: 'web.StateEpoch', params, repeatable: true })
    if (typeof known !== 'boolean' || typeof others !== 'boolean')
      throw nonsense('answered web.StateEpoch without known or others')
    // Absent from gateways of earlier versions.
    return { known, others, mark: typeof mark === 'number' && Number.isSafeInteger(mark) ? mark : 0 }
  }
  return {
    look: (storeId = '') => ask({ epoch: storeId }),
    keep: (storeId, over, mark) => ask({ epoch: storeId, over, keep: true, mark }),
  }
}
