import { S3Error } from '../../common/errors/s3-error.js'
import type { Scrape } from '../../common/metrics/render.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import type { Plugin } from '../../plugins/forms/plugin.js'

/** Renders the metrics; takes the header `Accept` of the request. */
export type ScrapeFor = (accept: string | undefined) => Promise<Scrape>

/** The operation by which signed callers read the metrics on the port of the endpoint. */
export function metricsPlugin(scrape: ScrapeFor): Plugin {
  return {
    name: 'metrics',
    operations: [
      defineOperation({
        name: 'GetMetrics',
        source: 'docs/observability.md#metrics',
        access: 'signed',
        action: 'metrics:GetMetrics',
        on: { method: 'GET', resource: 'service', path: '/-/metrics' },
        async run(request, context) {
          await context.checks.requireAction('metrics:GetMetrics')
          // The metrics are about all accounts.
          if (context.caller?.identity.account) {
            throw new S3Error('AccessDenied', {
              message: 'Only key pairs of the account of the server itself may read its metrics.',
            })
          }
          const { contentType, body } = await scrape(request.headers.accept)
          return { status: 200, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body }
        },
      }),
    ],
  }
}
