import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContext, type TlsOptions } from 'node:tls'
import { fingerprint } from '../../common/files/fingerprint.js'
import type { Logger } from '../../common/log.js'

/** Interval at which the files are examined, ms. */
const EXAMINE_MS = 5_000

/** What a server needs to offer TLS. */
export interface TlsSource {
  /** Options of the server, at present. */
  options(): TlsOptions
  /** Calls the listener with the new options after each change. */
  onChange(listener: (options: TlsOptions) => void): void
}

interface Loaded {
  readonly files: readonly KeyPairFiles[]
  /** The first one answers clients that name no host, or one that no certificate has. */
  readonly pairs: readonly [KeyPair, ...KeyPair[]]
  readonly seen: string
}

/**
 * The certificates of a server, selected by the name that the client asks for (SNI). Files that change are read again;
 * while one of them cannot be used, those read before stay in use. Connections keep what they began with.
 */
export class Certificates implements TlsSource {
  readonly #log: Logger
  readonly #timer: NodeJS.Timeout
  readonly #listeners: ((options: TlsOptions) => void)[] = []
  #loaded: Loaded
  /** The fingerprint at the last examination. */
  #seen: string
  /** The fingerprint of files that could not be used. */
  #failed: string | undefined

  /**
   * @param files at least one pair
   * @param examineMs interval at which the files are examined
   * @throws KeyPairError
   */
  constructor(files: readonly KeyPairFiles[], log: Logger, examineMs = EXAMINE_MS) {
    this.#log = log
    this.#loaded = load(files)
    this.#seen = this.#loaded.seen
    this.#warn()
    this.#timer = setInterval(() => this.#examine(), examineMs)
    this.#timer.unref()
  }

  options(): TlsOptions {
    const [{ cert, key }] = this.#loaded.pairs
    return {
      cert,
      key,
      minVersion: OLDEST_TLS,
      ALPNProtocols: ['http/1.1'],
      SNICallback: (name, done) => done(null, this.#pairFor(name).context),
    }
  }

  onChange(listener: (options: TlsOptions) => void): void {
    this.#listeners.push(listener)
  }

  /**
   * Reads these files, without using them yet.
   * @returns a function that uses them from now on; undefined if nothing has changed
   * @throws KeyPairError
   */
  prepare(files: readonly KeyPairFiles[]): (() => void) | undefined {
    const loaded = load(files)
    if (loaded.seen === this.#loaded.seen) return undefined
    return () => this.#use(loaded)
  }

  /** End of the validity of each certificate in use, ms since 1970. */
  expiries(): number[] {
    return this.#loaded.pairs.map(({ certificate }) => Date.parse(certificate.validTo))
  }

  /** Ends the examination of the files. */
  close(): void {
    clearInterval(this.#timer)
  }

  #pairFor(name: string): KeyPair {
    const { pairs } = this.#loaded
    return pairs.find(({ certificate }) => certificate.checkHost(name) !== undefined) ?? pairs[0]
  }

  /** Reads the files when they have changed and then stayed the same for one interval: both files of a pair change. */
  #examine(): void {
    const { files, seen: used } = this.#loaded
    const seen = seenOf(files)
    const settled = seen === this.#seen
    this.#seen = seen
    if (!settled || seen === used || seen === this.#failed) return
    try {
      this.#use(load(files))
    } catch (error) {
      this.#failed = seen
      const reason = (error as Error).message
      this.#log.error({ reason }, 'the new TLS certificate cannot be used; those read before stay in use')
    }
  }

  #use(loaded: Loaded): void {
    this.#loaded = loaded
    this.#seen = loaded.seen
    const options = this.options()
    for (const listener of this.#listeners) listener(options)
    const certificates = loaded.pairs.map(({ certificate }) => ({
      names: namesOf(certificate),
      until: certificate.validTo,
    }))
    this.#log.info({ certificates }, 'using the TLS certificates that have changed')
    this.#warn()
  }

  #warn(): void {
    for (const [i, { certificate }] of this.#loaded.pairs.entries()) {
      const { validFrom, validTo } = certificate
      const now = Date.now()
      if (now > Date.parse(validFrom) && now < Date.parse(validTo)) continue
      this.#log.warn(
        { file: this.#loaded.files[i]?.cert, validFrom, validTo },
        'the TLS certificate is not valid now: clients will refuse it',
      )
    }
  }
}

function load(files: readonly KeyPairFiles[]): Loaded {
  // Before the files are read: a change during that has another fingerprint, so they are read again.
  const seen = seenOf(files)
  const [first, ...others] = files.map(readKeyPair)
  if (first === undefined) throw new RangeError('there is no certificate')
  return { files, pairs: [first, ...others], seen }
}

function seenOf(files: readonly KeyPairFiles[]): string {
  return files.map(({ cert, key }) => [cert, fingerprint(cert), key, fingerprint(key)].join(' ')).join('\n')
}

/** The files of one certificate. */
export interface KeyPairFiles {
  /** The certificate in PEM, and after it those that lead to its authority. */
  readonly cert: string
  /** Its private key in PEM, without a passphrase. */
  readonly key: string
}

/** A certificate with its key, ready for connections. */
interface KeyPair {
  readonly certificate: X509Certificate
  /** PEM. */
  readonly cert: string
  readonly key: string
  readonly context: SecureContext
}

/** The oldest version of TLS that is accepted. */
const OLDEST_TLS = 'TLSv1.2'

/** Files that contain no usable certificate. The message names the file and never quotes its content. */
class KeyPairError extends Error {
  override readonly name = 'KeyPairError'
}

/** Reads a certificate and its key. Throws KeyPairError. */
export function readKeyPair(files: KeyPairFiles): KeyPair {
  const cert = read(files.cert)
  const key = read(files.key)
  const certificate = certificateOf(cert, files.cert)
  if (!certificate.checkPrivateKey(keyOf(key, files.key)))
    throw new KeyPairError(`${files.key} is not the private key of the certificate in ${files.cert}`)
  try {
    return { certificate, cert, key, context: createSecureContext({ cert, key, minVersion: OLDEST_TLS }) }
  } catch (error) {
    throw new KeyPairError(`${files.cert} and ${files.key} cannot be used: ${(error as Error).message}`)
  }
}

/** Reads certificates of authorities. Throws KeyPairError. */
export function readAuthorities(file: string): string {
  const text = read(file)
  certificateOf(text, file)
  return text
}

/** The names for which a certificate is, as texts for a log. */
export function namesOf({ subjectAltName, subject }: X509Certificate): string {
  return subjectAltName ?? subject ?? ''
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new KeyPairError(`cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`)
  }
}

function certificateOf(text: string, file: string): X509Certificate {
  try {
    return new X509Certificate(text)
  } catch {
    throw new KeyPairError(`${file} contains no certificate in PEM`)
  }
}

function keyOf(text: string, file: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch {
    throw new KeyPairError(`${file} contains no private key in PEM, or one with a passphrase`)
  }
}
