import type { GatewayAccount } from '../../auth/caller.js'
import { isStsCall } from '../../auth/sts-target.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { ClientRate } from '../../common/http/client-rate.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import type { Plugin } from '../../plugins/forms/plugin.js'
import { assumeRole } from './assume-role.js'
import { callerIdentity } from './caller-identity.js'
import { Parameters } from './parameters.js'
import type { Principals } from './principals.js'
import type { SealedSessions } from './sessions.js'
import type { Standing } from './standing.js'
import { stsError } from './sts-error.js'

export interface StsParts {
  readonly sessions: Pick<SealedSessions, 'issue'>
  readonly principals: Pick<Principals, 'keep'>
  readonly standing: Pick<Standing, 'accountOf'>
  readonly limits: Pick<ClientRate, 'run'>
  /** The account of the server itself. */
  readonly ownAccount: () => Promise<GatewayAccount>
  /** Returns what is wrong with a session policy; undefined if nothing is. */
  readonly policyProblem: (document: unknown) => string | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const VERSION = '2011-06-15'
const MAX_BODY_BYTES = 64 * 1024

/** The security token service on the port of S3: the body names the action, and both are one operation of the table. */
export function stsPlugin(parts: StsParts): Plugin {
  return Object.freeze({ name: 'sts', operations: [securityTokenService(parts)] })
}

function securityTokenService(parts: StsParts) {
  return defineOperation({
    name: 'SecurityTokenService',
    source: 'https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html',
    partly: 'Actions: AssumeRoleWithWebIdentity with a token of the task platform, and GetCallerIdentity.',
    access: 'public',
    action: 'none',
    on: { method: 'POST', resource: 'service' },
    async run(request, context) {
      if (!isStsCall(request)) {
        throw new S3Error('MethodNotAllowed', { fields: { Method: request.method, ResourceType: 'SERVICE' } })
      }
      const { bytes } = await request.body.collect(MAX_BODY_BYTES)
      const parameters = new Parameters(bytes.toString('utf8'))
      const action = parameters.get('Action')
      if (action === undefined) throw stsError('MissingAction', 'The request has no parameter Action.')
      const known = action === 'AssumeRoleWithWebIdentity' || action === 'GetCallerIdentity'
      if (!known || parameters.get('Version') !== VERSION) {
        throw stsError(
          'InvalidAction',
          `This server has AssumeRoleWithWebIdentity and GetCallerIdentity of version ${VERSION}.`,
        )
      }
      if (action === 'AssumeRoleWithWebIdentity') return assumeRole(request, parameters, parts)
      parameters.refuseOthers(['Action', 'Version'])
      return callerIdentity(request.id, context)
    },
  })
}
