import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A certificate and its key in PEM, as files. */
export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** An authority that issues certificates for tests, with the program openssl. */
export class Authority {
  /** Its certificate, PEM. */
  readonly file: string
  readonly #key: string
  readonly #folder: string

  constructor(folder: string, name = 'authority') {
    this.#folder = folder
    this.file = join(folder, `${name}.crt`)
    this.#key = join(folder, `${name}.key`)
    openssl([...REQUEST, '-x509', '-days', '2', '-subj', `/CN=${name}`, '-keyout', this.#key, '-out', this.file])
  }

  get pem(): string {
    return readFileSync(this.file, 'utf8')
  }

  /**
   * Issues a certificate. Files of that name are replaced one after the other, each at once.
   * @param file name of the files, without extension
   * @param names as openssl takes them: `DNS:a.example,IP:127.0.0.1`
   */
  issue(file: string, names: string): CertificateFiles {
    const at = (extension: string) => join(this.#folder, `${file}.${extension}`)
    openssl([...REQUEST, '-subj', `/CN=${file}`, '-keyout', at('key.new'), '-out', at('csr')])
    writeFileSync(at('ext'), `subjectAltName=${names}\n`)
    const by = ['-CA', this.file, '-CAkey', this.#key, '-set_serial', `0x${Date.now().toString(16)}${++serial}`]
    openssl(['x509', '-req', '-days', '2', '-in', at('csr'), ...by, '-extfile', at('ext'), '-out', at('crt.new')])
    renameSync(at('crt.new'), at('crt'))
    renameSync(at('key.new'), at('key'))
    return { cert: at('crt'), key: at('key') }
  }
}

let serial = 10
const REQUEST = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

function openssl(args: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
}
