/**
 * One rule of a bucket's CORS configuration.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/ManageCorsUsing.html
 */
export interface CorsRule {
  readonly id?: string
  readonly allowedMethods: readonly string[]
  /** Each with one `*` at most. */
  readonly allowedOrigins: readonly string[]
  /** Each with one `*` at most. */
  readonly allowedHeaders: readonly string[]
  readonly exposeHeaders: readonly string[]
  /** Time for which a browser may cache the response to a preflight, s. */
  readonly maxAgeSeconds?: number
}

declare module '../../state/records/setting-types.js' {
  interface SettingTypes {
    /** In order: the first rule that matches a request applies. */
    cors: readonly CorsRule[]
  }
}

export const CORS_METHODS: readonly string[] = ['GET', 'PUT', 'HEAD', 'POST', 'DELETE']
