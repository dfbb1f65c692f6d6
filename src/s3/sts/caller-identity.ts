import type { Session } from '../../auth/caller.js'
import { canonicalId } from '../../auth/identities/canonical-id.js'
import { element } from '../../common/xml/xml.js'
import type { Reply } from '../../response/reply.js'
import type { Context } from '../../server/context.js'
import { stsError } from './sts-error.js'
import { stsReply } from './sts-reply.js'

/** `arn:aws:sts::<canonical id>:assumed-role/<role>/<session>`. */
export function assumedRoleArn(account: string, { role, name }: Pick<Session, 'role' | 'name'>): string {
  return `arn:aws:sts::${account}:assumed-role/${role.slice(role.lastIndexOf('/') + 1)}/${name}`
}

/**
 * Says who has signed the request. The account is the canonical id, as ListBuckets and policies name it.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
 */
export function callerIdentity(requestId: string, { caller }: Pick<Context, 'caller'>): Reply {
  if (!caller) throw stsError('MissingAuthenticationToken', 'Request is missing Authentication Token')
  const { identity } = caller
  const account = canonicalId(identity)
  const { session, accessKeyId } = identity
  const arn = session ? assumedRoleArn(account, session) : `arn:aws:iam::${account}:user/${accessKeyId}`
  const content = [
    element('Arn', arn),
    element('UserId', session ? `${accessKeyId}:${session.name}` : accessKeyId),
    element('Account', account),
  ]
  return stsReply('GetCallerIdentity', content.join(''), requestId)
}
