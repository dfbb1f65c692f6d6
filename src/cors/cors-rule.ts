/** One rule of a bucket's CORS configuration. https://docs.aws.amazon.com/AmazonS3/latest/userguide/ManageCorsUsing.html */
export interface CorsRule {
  readonly id?: string
  readonly allowedMethods: readonly string[]
  /** Each with one `*` at most. */
  readonly allowedOrigins: readonly string[]
  /** Each with one `*` at most. */
  readonly allowedHeaders: readonly string[]
  readonly exposeHeaders: readonly string[]
  /** How long a browser may remember the answer to a preflight, s. */
  readonly maxAgeSeconds?: number
}

declare module '../state/bucket-settings.js' {
  interface SettingTypes {
    /** In the order given: the first that fits a request decides. */
    cors: readonly CorsRule[]
  }
}

export const CORS_METHODS: readonly string[] = ['GET', 'PUT', 'HEAD', 'POST', 'DELETE']
