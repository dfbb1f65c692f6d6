import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContext } from 'node:tls'

/** The files of one certificate. */
export interface KeyPairFiles {
  /** The certificate in PEM, and after it those that lead to its authority. */
  readonly cert: string
  /** Its private key in PEM, without a passphrase. */
  readonly key: string
}

/** A certificate with its key, ready for connections. */
export interface KeyPair {
  readonly certificate: X509Certificate
  /** PEM. */
  readonly cert: string
  readonly key: string
  readonly context: SecureContext
}

/** The oldest version of TLS that is accepted. */
export const OLDEST_TLS = 'TLSv1.2'

/** Files that contain no usable certificate. The message names the file and never quotes its content. */
export class KeyPairError extends Error {
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
