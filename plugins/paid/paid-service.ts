import { type PluginHost, S3Error, ServiceClient, type ServiceClientOptions } from 'dealgate/plugin'
import { z } from 'zod'
import { SentRequests } from './sent-requests.js'
import { Attempts, JobTokens } from './sign-in.js'
import { openFilLedger, type SpendLedger } from './spend-ledger.js'

/** Schemas of options that plugins with a service have. */
export const serviceOptions = {
  /** Address of the service; default none. */
  url: () => z.url({ protocol: /^https?$/ }).optional(),
  seconds: (min: number, max: number, fallback: number) => z.number().min(min).max(max).default(fallback),
}

/** The client of a service that the server may lack, made at its first use. */
export class OptionalService {
  readonly #options: () => Omit<ServiceClientOptions, 'url'> & { readonly url: string | undefined }
  readonly #missing: string
  #client: ServiceClient | undefined

  /** @param missing message of the error where there is no service */
  constructor(
    options: () => Omit<ServiceClientOptions, 'url'> & { readonly url: string | undefined },
    missing: string,
  ) {
    this.#options = options
    this.#missing = missing
  }

  /** Throws S3Error NotImplemented if the server has no such service. */
  get client(): ServiceClient {
    const { url, ...options } = this.#options()
    if (url === undefined) throw new S3Error('NotImplemented', { message: this.#missing })
    this.#client ??= new ServiceClient({ ...options, url })
    return this.#client
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.close()
  }
}

export interface PaidServiceOptions {
  /** Name of the plugin, with which the names of its records begin. */
  readonly plugin: string
  /** Name of the service in messages: `task platform`. */
  readonly service: string
  /** Called at the first use: the host need not have started before. Undefined if there is no service. */
  url(): string | undefined
  readonly timeoutSeconds: number
  /** See ServiceClientOptions. */
  readonly tokenHeader?: string
  /** Message of the error where there is no service. */
  readonly missing: string
  /** What its requests cost, in messages: see SpendLedgerOptions. */
  readonly spending: { readonly cost: string; readonly all: string }
  /** See SentRequestsOptions.patienceSeconds. */
  readonly patienceSeconds: number
}

/**
 * What a plugin needs for a service that callers sign in to and pay: its client, the bounds of sign-ins, the tokens of
 * jobs, what is spent, and the requests whose answers are awaited. The dependencies of a plugin extend it.
 */
export class PaidService<Request extends { readonly sent: number }> {
  readonly host: PluginHost
  readonly jobTokens: JobTokens
  readonly attempts: Attempts
  readonly ledger: SpendLedger
  readonly sent: SentRequests<Request>
  readonly #service: OptionalService

  /** @param host need not have started yet */
  constructor(host: PluginHost, options: PaidServiceOptions) {
    const { plugin, service, timeoutSeconds, tokenHeader, missing, spending, patienceSeconds } = options
    this.host = host
    this.jobTokens = new JobTokens(host, `${plugin}:job-bearer`)
    this.attempts = new Attempts(() => host.now())
    this.ledger = openFilLedger(host, spending)
    this.sent = new SentRequests(host, { records: `${plugin}-attempts`, ledger: this.ledger, patienceSeconds })
    this.#service = new OptionalService(
      () => ({
        service,
        url: options.url(),
        timeoutMs: timeoutSeconds * 1000,
        ...(tokenHeader !== undefined && { tokenHeader }),
      }),
      missing,
    )
  }

  /** Throws S3Error NotImplemented if the server has no such service. */
  get client(): ServiceClient {
    return this.#service.client
  }

  close(): Promise<void> {
    return this.#service.close()
  }
}
