//! Opens a bucket of S3, Google Cloud Storage or Azure.
//!
//! In: its URL. Out: the store, all of whose requests have a timeout. A build without the feature `buckets` returns an
//! error.

/// Opens the bucket of a URL.
#[cfg(not(feature = "buckets"))]
pub(super) fn bucket(
    _: &url::Url,
    _: std::time::Duration,
) -> Result<std::sync::Arc<dyn object_store::ObjectStore>, object_store::Error> {
    let source = "this build keeps snapshots only in directories; build it with the feature `buckets`".into();
    Err(object_store::Error::Generic { store: "URL", source })
}

#[cfg(feature = "buckets")]
pub(super) use remote::bucket;

#[cfg(feature = "buckets")]
mod remote {
    use std::{sync::Arc, time::Duration};

    use object_store::{
        ClientConfigKey, ObjectStore, ObjectStoreScheme, RetryConfig,
        aws::{AmazonS3Builder, AmazonS3ConfigKey},
        azure::{AzureConfigKey, MicrosoftAzureBuilder},
        gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
        prefix::PrefixStore,
    };
    use url::Url;

    /// How often a request is retried, within its timeout.
    const RETRIES: usize = 4;
    /// The library's timeout of a request: longer than any file takes at the slowest transfer rate.
    const LIBRARY_TIMEOUT: &str = "15 minutes";
    /// Idle connections are closed after this time: the store may close them unnoticed between two snapshots.
    const IDLE_TIMEOUT: &str = "5 seconds";

    /// Opens the bucket of a URL. The library takes keys and options that are not in the URL from the environment.
    pub(crate) fn bucket(url: &Url, timeout: Duration) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
        let (scheme, prefix) = ObjectStoreScheme::parse(url)?;
        // An error means that a provider is already installed.
        drop(rustls::crypto::ring::default_provider().install_default());
        let retries = RetryConfig { max_retries: RETRIES, retry_timeout: timeout / 2, ..RetryConfig::default() };
        let limits = [(ClientConfigKey::Timeout, LIBRARY_TIMEOUT), (ClientConfigKey::PoolIdleTimeout, IDLE_TIMEOUT)];
        // The three builders have no trait in common.
        macro_rules! bounded {
            ($builder:ty, $key:ident) => {{
                let builder = <$builder>::from_env().with_url(url.as_str()).with_retry(retries);
                let limited =
                    limits.into_iter().fold(builder, |b, (key, value)| b.with_config($key::Client(key), value));
                Arc::new(PrefixStore::new(limited.build()?, prefix))
            }};
        }
        Ok(match scheme {
            ObjectStoreScheme::AmazonS3 => bounded!(AmazonS3Builder, AmazonS3ConfigKey),
            ObjectStoreScheme::GoogleCloudStorage => bounded!(GoogleCloudStorageBuilder, GoogleConfigKey),
            ObjectStoreScheme::MicrosoftAzure => bounded!(MicrosoftAzureBuilder, AzureConfigKey),
            _ => {
                let source = "write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX".into();
                return Err(object_store::Error::Generic { store: "URL", source });
            }
        })
    }
}
