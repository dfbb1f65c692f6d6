import type { Ownership } from './access.js'

/** Facts of the server, the same for every request. */
export interface ServerFacts {
  readonly region: string
  /** Object ownership of new buckets. */
  readonly objectOwnership: Ownership
  /** Whether classes that only name a price, such as STANDARD_IA, are kept as labels of objects or refused. */
  readonly storageClassLabels: 'keep' | 'refuse'
  /** Keys of clients (SSE-C) are accepted without TLS, too. */
  readonly customerKeysOverHttp: boolean
  /** Scheme and host of share links. */
  readonly shareUrl: string
  /**
   * Name of the account with this canonical id; undefined for an account of which this process has seen no key pair. S3
   * states no names at all: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Owner.html
   */
  readonly accountName: (canonicalId: string) => string | undefined
  /** The data folder; undefined for a server that was given an open state. */
  readonly data: string | undefined
  /** Number of the process among the workers of the server, from 1; undefined without workers. */
  readonly worker: number | undefined
  /** Buckets are served as websites, on a port of their own. */
  readonly websites: boolean
  /** True once the server has begun to shut down. */
  readonly closing: () => boolean
}
