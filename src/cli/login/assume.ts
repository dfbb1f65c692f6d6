import { parseDocument, type XmlNode } from '../../common/xml/xml.js'
import { Failure } from '../failure.js'
import { postForm } from './http.js'

export interface Assumed {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  /** ISO 8601. */
  readonly expiration: string
}

/** The longest session, seconds. */
const SECONDS = 43_200
const ROLE = 'arn:aws:iam::000000000000:role/platform-user'

/** Exchanges a token of the platform for temporary credentials at an S3 endpoint. Throws Failure. */
export async function assume(endpoint: string, token: string): Promise<Assumed> {
  const { status, text } = await postForm('the S3 endpoint', `${endpoint}/`, {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: ROLE,
    RoleSessionName: 'dealgate-login',
    DurationSeconds: String(SECONDS),
    WebIdentityToken: token,
  })
  const { node } = await parseDocument(Buffer.from(text)).catch(() => {
    throw new Failure(`The S3 endpoint at ${endpoint} answers with status ${status} and no XML: is it dealgate?`)
  })
  const [accessKeyId, secretAccessKey, sessionToken, expiration] = [
    'AccessKeyId',
    'SecretAccessKey',
    'SessionToken',
    'Expiration',
  ].map((name) => textOf(node, ['AssumeRoleWithWebIdentityResult', 'Credentials', name]))
  if (status === 200 && accessKeyId && secretAccessKey && sessionToken && expiration) {
    return { accessKeyId, secretAccessKey, sessionToken, expiration }
  }
  const [code, message] = ['Code', 'Message'].map((name) => textOf(node, ['Error', name]) ?? textOf(node, [name]))
  throw new Failure(`The S3 endpoint at ${endpoint} issues no credentials: ${code ?? status}: ${message ?? ''}`)
}

function textOf(node: XmlNode, path: readonly string[]): string | undefined {
  let found: XmlNode | undefined = node
  for (const name of path) found = found?.children.get(name)?.[0]
  return found?.text
}
