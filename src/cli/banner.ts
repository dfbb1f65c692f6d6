import type { Config } from '../config.js'
import type { KeyPair } from './keys.js'

export interface Started {
  readonly endpoint: string
  readonly region: string
  readonly keys: KeyPair
  /** URL of the gateway, embedded or not. */
  readonly gateway: string
  readonly embedded: boolean
}

/** What `serve` prints once it listens. With `--print json` one line that is a stable interface; the text is for people. */
export function banner(started: Started, config: Pick<Config, 'print' | 'data'>): string {
  const { endpoint, region, keys, gateway, embedded } = started
  if (config.print === 'json') return `${JSON.stringify({ endpoint, region, ...keys, gateway })}\n`
  return `dealgate is ready.

  endpoint    ${endpoint}
  access key  ${keys.accessKey}
  secret key  ${keys.secretKey}
  region      ${region}
  gateway     ${gateway}${embedded ? ' (embedded)' : ''}
  data        ${config.data}

aws-cli:
  export AWS_ACCESS_KEY_ID=${shellWord(keys.accessKey)} AWS_SECRET_ACCESS_KEY=${shellWord(keys.secretKey)} AWS_DEFAULT_REGION=${region}
  aws --endpoint-url ${endpoint} s3 mb s3://my-bucket
  aws --endpoint-url ${endpoint} s3 ls

rclone:
  rclone config create dealgate s3 provider=Other endpoint=${endpoint} region=${region} access_key_id=${shellWord(keys.accessKey)} secret_access_key=${shellWord(keys.secretKey)}
  rclone lsd dealgate:

Stop with Ctrl-C.
`
}

function shellWord(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
