import type { Test } from 'tap'
import { Between, type Fate, type Passed } from '../../support/gateway/between.js'
import { FakeGateway } from '../../support/gateway/fake-gateway.js'

/** What happens to a request for a deal. */
export type Accident =
  | 'none'
  /** The connection breaks before the gateway sees the request. */
  | 'lost-before'
  /** The deal is made; the connection breaks before the answer. */
  | 'lost-after'
  /** The deal is made; a proxy on the way answers that it took too long. */
  | 'timeout-after'
  /** Nothing is made; the same answer. */
  | 'timeout-before'

interface MadeDeal {
  readonly subject: string
  readonly token: string | undefined
  readonly record: Record<string, string>
}

/** A gateway of public deployments, or one with tokens and states of deals, whose deals are in the test's hands. */
export class ScriptedDeals {
  readonly gateway: Between
  readonly objects: Map<string, Buffer>
  readonly made: MadeDeal[] = []
  /** One for each request for a deal, then none. */
  readonly accidents: Accident[] = []
  /** What happens to every request, deals or not. */
  down: Fate | undefined
  /** Refuses deals with these words. */
  refusal: string | undefined
  /** Histories of what never had a deal fail with 500, as on public gateways. */
  missIs500 = true
  /** Deals are in the history only once this says so. */
  historyKnows: (deal: MadeDeal) => boolean = () => true
  /** Held until it resolves. */
  beforeAnswer: () => Promise<void> = async () => {}
  /** The gateway was cut short in a deal whose outcome is unknown. */
  settling = false
  state = 'StorageDealCheckForAcceptance'
  /** Of deals that are in another state, by CID. */
  readonly states = new Map<string, string>()
  epoch = 1000
  readonly providers: object[] = []
  readonly #tokens: boolean

  private constructor(gateway: Between, fake: FakeGateway, tokens: boolean) {
    this.gateway = gateway
    this.objects = fake.objects
    this.#tokens = tokens
  }

  static async start(
    t: Test,
    {
      tokens = false,
      status = tokens,
      more = [],
    }: { tokens?: boolean; status?: boolean; more?: readonly string[] } = {},
  ) {
    const fake = await FakeGateway.start(t)
    const features = [...(tokens ? ['deal-tokens'] : []), ...(status ? ['deal-status', 'deal-providers'] : []), ...more]
    fake.onCall.set('web.ServerInfo', (response) => {
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id: 1, result: { GatewayVersion: '1', GatewayFeatures: features } }),
      )
    })
    const scripted = new ScriptedDeals(await Between.start(t, fake), fake, tokens)
    scripted.gateway.fate = (request) => scripted.#fate(request)
    return scripted
  }

  /** How often a deal was asked for. */
  get asked(): number {
    return this.gateway.count('POST', '/gateway/deal')
  }

  async #fate(request: Passed): Promise<Fate> {
    if (this.down) return this.down
    const [, endpoint = '', rest = ''] =
      /^\/gateway\/(deals?|retrieve|bucket\/retrieve|dealstatus|dealprogress|providers)(?:\/(.*))?$/.exec(
        request.path,
      ) ?? []
    const subject = decodeURIComponent(rest)
    if (endpoint === 'deal' || endpoint === 'deals') return this.#deal(request, subject)
    if (endpoint.endsWith('retrieve')) return this.#history(subject)
    if (endpoint === 'dealstatus') return this.#status(subject)
    if (endpoint === 'dealprogress')
      return this.settling || this.made.some(({ token }) => token === subject)
        ? success({
            ...{ phase: this.settling ? 'Settling' : 'Done', bytesDone: 1, bytesTotal: 1 },
            ...{ filesDone: 1, filesTotal: 1 },
          })
        : {
            status: 404,
            body: '{"data":null,"status":"fail","message":"No deal was asked for with this client token."}',
          }
    if (endpoint === 'providers') return success({ providers: this.providers, epoch: this.epoch, epochSeconds: 30 })
    return 'pass'
  }

  async #deal(request: Passed, subject: string): Promise<Fate> {
    const accident = this.accidents.shift() ?? 'none'
    if (accident === 'lost-before') return 'cut-before'
    if (accident === 'timeout-before') return { status: 504, type: 'text/html', body: '<html>Gateway Time-out</html>' }
    if (this.refusal !== undefined)
      return { status: 200, body: JSON.stringify({ data: {}, status: 'fail', message: this.refusal }) }
    const token = this.#tokens ? (request.headers['x-cloud-client-token'] as string | undefined) : undefined
    const known = token === undefined ? undefined : this.made.find((deal) => deal.token === token)
    const deal = known ?? this.#make(subject, token, JSON.parse(request.body.toString()) as Record<string, string>)
    await this.beforeAnswer()
    if (accident === 'lost-after') return 'cut-before'
    if (accident === 'timeout-after') return { status: 504, type: 'text/html', body: '<html>Gateway Time-out</html>' }
    return success(deal.record)
  }

  #make(subject: string, token: string | undefined, body: Record<string, string>): MadeDeal {
    const record = {
      filename: `/data/${subject}`,
      walletAddress: 'f3wallet',
      verifiedDeal: body.VerifiedDeal ?? '',
      fastRetrieval: body.FastRetrieval ?? '',
      dataCid: 'bafydata',
      minerId: body.MinerId ?? '',
      price: body.Price ?? '',
      duration: body.Duration ?? '',
      dealCid: `bafydeal${this.made.length + 1}`,
      timeStamp: String(Date.now() * 1000),
    }
    const deal = { subject, token, record }
    this.made.push(deal)
    return deal
  }

  #history(subject: string): Fate {
    const deals = this.made.filter((deal) => deal.subject === subject && this.historyKnows(deal))
    if (deals.length === 0 && this.missIs500)
      return {
        status: 500,
        body: '{"data":{},"status":"fail","message":"We encountered an internal error, please try again."}',
      }
    return success({
      file_name: '',
      deals: deals.map(({ record }) => ({ data: record, status: 'success', message: 'm' })),
    })
  }

  #status(dealCid: string): Fate {
    const deal = this.made.find(({ record }) => record.dealCid === dealCid)
    if (!deal) return { status: 404, body: '{"data":null,"status":"fail","message":"There is no such deal."}' }
    const { dataCid, minerId, duration } = deal.record
    return success({
      ...{
        dealCid,
        dataCid,
        minerId,
        pieceCid: 'baga',
        pieceSize: 256,
        state: this.states.get(dealCid) ?? this.state,
        message: '',
      },
      ...{ startEpoch: 1000, endEpoch: 1000 + Number(duration), epoch: this.epoch, epochSeconds: 30 },
    })
  }
}

function success(data: object): Fate {
  return { status: 200, body: JSON.stringify({ data, status: 'success', message: '' }) }
}
