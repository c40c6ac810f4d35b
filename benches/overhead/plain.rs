//! The yardstick: a proxy of the same libraries that only forwards.

use std::convert::Infallible;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

type Upstream = Client<HttpConnector, Full<Bytes>>;

/// Starts it; returns its base URL.
pub(crate) async fn start(upstream: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let client: Upstream = Client::builder(TokioExecutor::new()).build_http();
    let authority: Authority = upstream.trim_start_matches("http://").parse().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let _best_effort = stream.set_nodelay(true);
            let (client, authority) = (client.clone(), authority.clone());
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let (client, authority) = (client.clone(), authority.clone());
                    async move { Ok::<_, Infallible>(forward(&client, authority, request).await) }
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ended = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    base_url
}

async fn forward(
    client: &Upstream,
    authority: Authority,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path: PathAndQuery = parts.uri.path_and_query().unwrap().clone();
    parts.uri = Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(authority)
        .path_and_query(path)
        .build()
        .unwrap();
    parts.headers.remove("host");
    let answer = client
        .request(Request::from_parts(parts, Full::new(body)))
        .await
        .unwrap();
    let (parts, body) = answer.into_parts();
    Response::from_parts(parts, Full::new(body.collect().await.unwrap().to_bytes()))
}
