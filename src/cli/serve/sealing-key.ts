import { readFileSync } from 'node:fs'
import { parseSealingKey } from '../../plugins/kit/sealing-key.js'
import type { Config } from '../config/config.js'
import { Failure } from '../failure.js'

/** The configured sealing key; undefined if there is none. Throws Failure for a file without a key. */
export function sealingKeyOf({
  sealingKey,
  sealingKeyFile,
}: Pick<Config, 'sealingKey' | 'sealingKeyFile'>): Uint8Array | undefined {
  if (sealingKeyFile === undefined) return sealingKey === undefined ? undefined : parseSealingKey(sealingKey)
  let text: string
  try {
    text = readFileSync(sealingKeyFile, 'utf8')
  } catch (cause) {
    throw new Failure(`Cannot read the sealing key: ${(cause as Error).message}`, { cause })
  }
  const key = parseSealingKey(text)
  if (key === undefined) {
    throw new Failure(`${sealingKeyFile} must contain the sealing key: 64 hexadecimal digits (openssl rand -hex 32)`)
  }
  return key
}
