import { type Logger, redact } from '../../common/log.js'
import type { EndedRequest } from '../api/hooks.js'
import type { Plugin } from '../api/plugin.js'
import { canonicalId } from '../auth/credentials.js'
import { actionNames } from '../plugins/actions.js'
import type { AccessEntry, RequestFacts } from './access-log.js'

type Known = 'caller' | 'context' | 'selected' | 'failure'

/** Of a request that was forwarded, nothing is known but its head. */
export type EndedFacts = Pick<RequestFacts, 'incoming'> & Partial<Pick<RequestFacts, Known>>

export type PluginsOfRequests = readonly Pick<Plugin, 'name' | 'requestEnded'>[]

/** Tells the plugins of a request that has ended; undefined if none asks, so that nothing is described. */
export function requestTeller(plugins: PluginsOfRequests, log: Logger) {
  const asking = plugins.filter(({ requestEnded }) => requestEnded)
  if (asking.length === 0) return undefined
  return (entry: AccessEntry, facts: EndedFacts): void => {
    const ended = endedRequest(entry, facts)
    for (const plugin of asking) {
      try {
        plugin.requestEnded?.(ended)
      } catch (err) {
        log.error({ err, requestId: entry.requestId, plugin: plugin.name, hook: 'requestEnded' }, 'a hook failed')
      }
    }
  }
}

function endedRequest(entry: AccessEntry, { context, incoming, ...facts }: EndedFacts): EndedRequest {
  const { requestId, operation, plugin, method, bucket, status, error, bytesIn, bytesOut, ms, cut, remote } = entry
  const { form } = context ?? {}
  const { identity } = facts.caller ?? form?.caller ?? {}
  const formKey = form?.key
  return {
    ...{ requestId, operation, plugin, method, bucket, status, error, bytesIn, bytesOut, ms, cut, remote },
    key: entry.key ?? (formKey === undefined ? undefined : redact(formKey)),
    userAgent: incoming.headers['user-agent'],
    signer: identity && {
      accessKeyId: identity.accessKeyId,
      account: canonicalId(identity),
      session: identity.session?.name,
    },
    refusal: status === 403 ? refusalOf(entry, facts) : undefined,
  }
}

function refusalOf(
  { decision }: AccessEntry,
  { selected, failure }: Pick<EndedFacts, 'selected' | 'failure'>,
): EndedRequest['refusal'] {
  const denied = denying(decision)
  const action = selected && actionNames(selected.operation.action, selected.plugin)[0]
  return {
    action: /^[a-z][a-z0-9-]*:\w+(?=: )/.exec(denied ?? '')?.[0] ?? action,
    reason: denied ?? redact(failure?.message ?? ''),
    told: denied === undefined,
  }
}

/** The reason of a decision, if it has refused: one that was not the last step of a refused request has allowed it. */
export function denying(reason: string | undefined): string | undefined {
  return reason !== undefined && /deny/.test(reason) ? reason : undefined
}
