import { relative } from 'node:path'
import type { Config } from '../config/config.js'
import { credentialsPath } from '../keys/credentials-file.js'

/** What a server with these options uses, and a backup of its data folder does not contain. Without secrets. */
export function notIncluded(config: Config): string[] {
  const { data, state, gatewayUrl, platformUrl, paymentUrl, kuboApi, staging, sealingKey, sealingKeyFile } = config
  const credentials = credentialsPath(config)
  return [
    state &&
      `the records in ${place(state)} (--state): back up that database with its own tools, right after this backup`,
    gatewayUrl && `the objects and deals of the gateway ${place(gatewayUrl)}`,
    gatewayUrl === undefined && platformUrl && `the task platform ${place(platformUrl)}`,
    gatewayUrl !== undefined && paymentUrl && `the storage payment API ${place(paymentUrl)}`,
    kuboApi && `the content of deals at the Kubo node ${place(kuboApi)}`,
    !['local', 'gateway'].includes(staging) && `parts of multipart uploads in ${staging} (--staging)`,
    isOutside(data, credentials) && `the credentials file ${credentials}`,
    (sealingKey ?? sealingKeyFile) !== undefined && 'the sealing key of the options',
    'the config file, variables and TLS certificates of the server',
  ].filter((text) => typeof text === 'string')
}

export function isOutside(folder: string, path: string): boolean {
  return relative(folder, path).startsWith('..')
}

function place(url: string): string {
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}
