/**
 * The objects of the payment API, the task platform and the deal endpoints of gateways, each declared once: the
 * services write them, plugins read them, and docs/reference/documents.md lists them. A member has its name on the wire
 * and the kind of its value, and where the name does not say it, its meaning.
 */

/** What a service writes for each kind. */
interface KindValues {
  text: string
  nullableText: string | null
  /** A whole number. */
  count: number
  /** A number that may have a fraction. */
  amount: number
  nullableNumber: number | null
  flag: boolean
  /** A flag as 1 or 0. */
  bit: 0 | 1
  /** Unix seconds; 0 for never. */
  seconds: number
  /** A text such as `0.0001 FIL/GiB/day`. */
  statistic: string
}

export type Kind = keyof KindValues
export type DocumentFields = Readonly<Record<string, Kind | readonly [kind: Kind, meaning: string]>>
export type KindOf<Field> = Field extends readonly [infer Of extends Kind, string]
  ? Of
  : Field extends Kind
    ? Field
    : never

/** A document as its service writes it. */
export type Document<Fields extends DocumentFields> = { [Name in keyof Fields]: KindValues[KindOf<Fields[Name]>] }

const PRICE = 'Decimal, as text: fil per GiB and epoch.'
const PIECE_LIMIT = 'With its unit, as the provider words it: `32GiB`.'
const DIGITS = 'In digits: seconds, milli- or microseconds since 1970.'
const NUMBER = 'A number of the service, as it is.'
const TOKEN_UNITS = 'Digits, in the smallest unit of the token'

export const documents = {
  offlineDeal: {
    id: ['count', 'Number of this offline deal, by which its log is read.'],
    car_file_id: 'count',
    deal_cid: 'text',
    deal_id: ['count', 'Number of the deal on the chain; 0 while there is none.'],
    miner_id: 'count',
    miner_fid: 'text',
    verified: 'flag',
    start_epoch: 'count',
    sender_wallet_id: 'count',
    status: 'text',
    note: 'nullableText',
    on_chain_status: 'text',
    tx_hash_unlock: 'nullableText',
    unlock_at: 'seconds',
    create_at: 'seconds',
    update_at: 'seconds',
  },
  upload: {
    source_file_upload_id: 'count',
    car_file_id: ['count', '0 while it is in no CAR.'],
    file_name: 'text',
    file_size: ['count', 'Bytes.'],
    upload_at: 'seconds',
    duration: ['count', 'Days.'],
    pin_status: 'text',
    payload_cid: ['text', 'Of the CAR; empty while there is none.'],
    status: 'text',
    token_id: 'text',
    mint_address: 'text',
    nft_tx_hash: 'text',
  },
  uploadAnswer: {
    source_file_upload_id: 'count',
    payload_cid: ['text', 'Of the file.'],
    ipfs_url: 'text',
    file_size: ['count', 'Bytes.'],
    w_cid: ['text', 'A UUID and the CID.'],
  },
  bill: {
    pay_id: 'count',
    pay_tx_hash: 'text',
    pay_amount: ['text', `${TOKEN_UNITS}.`],
    unlock_amount: ['text', 'The same; empty while the payment is locked.'],
    file_name: 'text',
    payload_cid: 'text',
    pay_at: 'seconds',
    unlock_at: 'seconds',
    deadline: 'seconds',
    network_name: 'text',
    token_name: 'text',
  },
  /** Beyond the interface. */
  wallet: {
    wallet_address: 'text',
    network_name: 'text',
    locked: ['text', `${TOKEN_UNITS}: of payments that are neither unlocked nor given back.`],
    unlocked: ['text', 'The same: what storage providers got of all payments.'],
    refunded: ['text', 'The same: what went back to the wallet.'],
  },
  coin: {
    kind: ['text', '`token` for payments; `native` for the fees of a chain.'],
    name: 'text',
    address: ['text', 'Of the contract of a token; empty for a native coin.'],
    decimals: ['count', 'Digits behind the point.'],
    balance: ['text', 'Digits, in its smallest unit; empty while it cannot be read.'],
  },
  dealDetail: {
    deal_id: ['count', '0 for an upload without a deal.'],
    deal_cid: 'text',
    message_cid: 'text',
    piece_cid: 'text',
    signature: 'text',
    signature_type: 'text',
    piece_size_format: 'text',
    client: 'text',
    client_collateral_format: 'text',
    provider: 'text',
    provider_tag: 'text',
    provider_collateral_format: 'text',
    network_name: 'text',
    ipfs_url: 'text',
    file_name: 'text',
    w_cid: 'text',
    height: ['count', 'Epoch of the chain.'],
    start_height: 'count',
    end_height: ['count', 'Epoch at which the deal expires.'],
    created_at: 'seconds',
    locked_at: 'seconds',
    verified_deal: 'flag',
    unlocked: 'flag',
    storage_price_per_epoch: 'amount',
    storage_price: 'amount',
    verified_provider: ['count', NUMBER],
    status: ['count', NUMBER],
    locked_fee: ['text', 'Digits.'],
  },
  dealLogEntry: {
    id: 'count',
    offline_deal_id: 'count',
    on_chain_status: 'text',
    on_chain_message: 'text',
    create_at: 'seconds',
  },
  payment: {
    w_cid: 'text',
    pay_amount: ['text', `${TOKEN_UNITS}; empty while nothing is paid.`],
    pay_tx_hash: 'text',
    token_address: 'text',
  },
  mint: {
    id: 'count',
    source_file_upload_id: 'count',
    nft_tx_hash: 'text',
    mint_address: 'text',
    token_id: 'text',
    create_at: 'seconds',
    update_at: 'seconds',
  },
  /** Parameters of both variants; in variant B the names are in upper case. */
  systemParams: {
    payment_contract_address: 'text',
    mint_contract_address: 'text',
    payment_recipient_address: 'text',
    stable_address: 'text',
    gas_limit: 'count',
    lock_time: ['count', 'Days.'],
    pay_multiply_factor: 'amount',
  },
  signedInParams: {
    chain_name: ['text', 'Name of the chain environment, which a sign-in names as Network.'],
    dao_contract_address: 'text',
    dex_address: 'text',
    stable_wrapped_pool_contract: 'text',
    dao_threshold: 'count',
    storage_coin_price: 'amount',
  },
  hostInfo: {
    version: 'text',
    operating_system: 'text',
    architecture: 'text',
    cpu_number: 'count',
  },
  priceStatistics: {
    average_cost_push_message: 'statistic',
    average_data_cost_sealing_1TB: 'statistic',
    average_gas_cost_sealing_1TB: 'statistic',
    average_min_piece_size: 'statistic',
    average_price_per_GB_per_year: 'statistic',
    average_verified_price_per_GB_per_year: 'statistic',
    historical_average_price_regular: 'statistic',
    historical_average_price_verified: 'statistic',
  },
  provider: {
    miner_id: 'text',
    location: 'text',
    price: ['text', PRICE],
    verified_price: ['text', 'The same for verified deals.'],
    min_piece_size: ['text', PIECE_LIMIT],
    max_piece_size: ['text', PIECE_LIMIT],
    offline_deal_available: 'flag',
    score: 'count',
    status: 'text',
    contact_info: 'text',
    update_time_str: ['text', 'When this was reported, as the service wrote it.'],
  },
  bid: {
    bid_id: 'nullableNumber',
    status: 'text',
    price: ['text', PRICE],
    min_piece_size: 'text',
    proposal: 'text',
    expire_days: 'nullableNumber',
    contact_info: 'text',
    username: 'text',
    created_on: ['text', DIGITS],
    won_on: 'nullableText',
  },
  bidder: {
    status: 'text',
    registered_on: 'text',
    headline: 'nullableText',
    summary: 'nullableText',
  },
  platformDeal: {
    id: 'nullableNumber',
    deal_cid: 'nullableText',
    file_path: 'nullableText',
    file_source_url: ['text', 'Empty for callers who are neither poster nor provider.'],
    md5_origin: 'nullableText',
    miner_id: 'nullableNumber',
    note: 'nullableText',
    start_epoch: 'nullableNumber',
    status: 'text',
    task_id: 'nullableNumber',
    user_id: 'nullableNumber',
    created_at: ['text', DIGITS],
    updated_at: ['text', DIGITS],
  },
  task: {
    task_id: 'nullableNumber',
    uuid: 'text',
    task_name: 'text',
    description: 'text',
    type: ['nullableText', 'regular or verified.'],
    status: 'text',
    is_public: 'bit',
    tags: ['nullableText', 'At most five, separated by commas.'],
    min_price: ['nullableText', PRICE],
    max_price: ['nullableText', PRICE],
    miner_id: 'nullableText',
    expire_days: 'nullableNumber',
    task_file_name: 'text',
    created_on: ['text', DIGITS],
  },
  taskCounts: {
    bid_count: 'count',
    deal_count: 'count',
    successful_deal_count: 'count',
  },
  poster: {
    complete_task_count: 'count',
    contact_info: 'text',
    member_since: ['text', DIGITS],
  },
  gatewayDeal: {
    filename: 'text',
    walletAddress: 'text',
    verifiedDeal: ['text', '`true` or `false`.'],
    fastRetrieval: ['text', '`true` or `false`.'],
    dataCid: 'text',
    minerId: 'text',
    price: ['text', 'Decimal: fil per epoch.'],
    duration: ['text', 'Epochs, in digits.'],
    dealCid: 'text',
    timeStamp: ['text', 'Time since 1970 in digits, whose number implies the unit.'],
  },
  dealProgress: {
    phase: 'text',
    bytesDone: 'count',
    bytesTotal: 'count',
    filesDone: 'count',
    filesTotal: 'count',
  },
} as const satisfies Record<string, DocumentFields>

/**
 * Fields of requests to the task platform, and their names in lower case: services and deployments spell some of them
 * differently.
 */
export const taskFields = {
  TaskName: ['task_name'],
  CuratedDataset: ['curated_dataset'],
  Description: ['description'],
  IsPublic: ['is_public'],
  Type: ['type', 'verified_type'],
  MinerId: ['miner_id'],
  MinPrice: ['min_price'],
  MaxPrice: ['max_price'],
  Tags: ['tags'],
  ExpireDays: ['expire_days', 'expired_days'],
  BidMode: ['bid_mode', 'auto_bid'],
  FastRetrieval: ['fast_retrieval'],
  SourceId: ['source_id'],
  Duration: ['duration'],
  Uuid: ['uuid'],
} as const
