//! Decoded pairs to a tree, refusing whatever two readers could merge in two ways.

use std::collections::BTreeMap;

use super::name::{self, Segment};
use super::{FormError, FormValue};
use crate::stripe::parameter::echo;

pub(super) fn fields(pairs: &[(String, String)]) -> Result<BTreeMap<String, FormValue>, FormError> {
    let mut fields: BTreeMap<String, Node> = BTreeMap::new();
    for (name, value) in pairs {
        let (root, steps) = name::parse(name)?;
        let node = fields.entry(root).or_insert(Node::Vacant);
        insert(node, &steps, value).map_err(|clash| clash.on(name))?;
    }
    let fields = fields.into_iter();
    Ok(fields.map(|(name, node)| (name, node.finish())).collect())
}

/// A value under construction.
enum Node {
    Vacant,
    Scalar(String),
    Map(BTreeMap<String, Self>),
    List(List),
}

struct List {
    spelling: Spelling,
    items: Vec<Node>,
}

/// How a list was written; one list has one spelling.
#[derive(PartialEq)]
enum Spelling {
    /// `x[0]=`, `x[0][key]=`.
    Indexed,
    /// `x[]=`.
    Pushed,
    /// `x[][key]=`. Every item starts with the same steps: SDKs write them so, and Rack starts a new
    /// item where a key comes again, so both see the same items.
    PushedMaps { first: Vec<Segment> },
}

enum Clash {
    Duplicate,
    Mixed,
    Index,
    Grouping,
}

impl Clash {
    fn on(self, name: &str) -> FormError {
        let name = echo(name);
        match self {
            Self::Duplicate => FormError::Duplicate(name),
            Self::Mixed => FormError::Mixed(name),
            Self::Index => FormError::Index(name),
            Self::Grouping => FormError::Grouping(name),
        }
    }
}

/// Recursion is bounded by `DEPTH_MAX`, which the name's grammar has checked.
fn insert(node: &mut Node, steps: &[Segment], value: &str) -> Result<(), Clash> {
    match steps.split_first() {
        None => match node {
            Node::Vacant => {
                *node = Node::Scalar(value.to_owned());
                Ok(())
            }
            Node::Scalar(_) => Err(Clash::Duplicate),
            Node::Map(_) | Node::List(_) => Err(Clash::Mixed),
        },
        Some((Segment::Key(key), rest)) => {
            let child = node.as_map()?.entry(key.clone()).or_insert(Node::Vacant);
            insert(child, rest, value)
        }
        Some((Segment::Index(index), rest)) => {
            let list = node.as_list(Spelling::Indexed)?;
            if *index == list.items.len() {
                list.items.push(Node::Vacant);
            }
            let item = list.items.get_mut(*index).ok_or(Clash::Index)?;
            insert(item, rest, value)
        }
        Some((Segment::Push, [])) => {
            let list = node.as_list(Spelling::Pushed)?;
            list.items.push(Node::Scalar(value.to_owned()));
            Ok(())
        }
        Some((Segment::Push, rest)) => insert_pushed(node, rest, value),
    }
}

fn insert_pushed(node: &mut Node, rest: &[Segment], value: &str) -> Result<(), Clash> {
    let starts = match node {
        // An item that starts with a list of its own would never be seen to start again.
        Node::Vacant if rest.contains(&Segment::Push) => return Err(Clash::Grouping),
        Node::List(List {
            spelling: Spelling::PushedMaps { first },
            ..
        }) => first == rest,
        _ => true,
    };
    let list = node.as_pushed_maps(rest)?;
    if starts {
        list.items.push(Node::Vacant);
    }
    let item = list.items.last_mut().ok_or(Clash::Grouping)?;
    insert(item, rest, value).map_err(|_| Clash::Grouping)
}

impl Node {
    fn as_map(&mut self) -> Result<&mut BTreeMap<String, Self>, Clash> {
        if matches!(self, Self::Vacant) {
            *self = Self::Map(BTreeMap::new());
        }
        match self {
            Self::Map(map) => Ok(map),
            _ => Err(Clash::Mixed),
        }
    }

    fn as_list(&mut self, spelling: Spelling) -> Result<&mut List, Clash> {
        if matches!(self, Self::Vacant) {
            *self = Self::List(List {
                spelling,
                items: Vec::new(),
            });
            return self.as_any_list();
        }
        let list = self.as_any_list()?;
        if list.spelling == spelling {
            Ok(list)
        } else {
            Err(Clash::Mixed)
        }
    }

    /// `rest` is the first item's first name where the list is new.
    fn as_pushed_maps(&mut self, rest: &[Segment]) -> Result<&mut List, Clash> {
        if matches!(self, Self::Vacant) {
            return self.as_list(Spelling::PushedMaps {
                first: rest.to_vec(),
            });
        }
        let list = self.as_any_list()?;
        match list.spelling {
            Spelling::PushedMaps { .. } => Ok(list),
            Spelling::Indexed | Spelling::Pushed => Err(Clash::Mixed),
        }
    }

    fn as_any_list(&mut self) -> Result<&mut List, Clash> {
        match self {
            Self::List(list) => Ok(list),
            _ => Err(Clash::Mixed),
        }
    }

    fn finish(self) -> FormValue {
        match self {
            // Vacant nodes live only within one `insert`, which fills them or fails.
            Self::Vacant => FormValue::Scalar(String::new()),
            Self::Scalar(text) => FormValue::Scalar(text),
            Self::Map(map) => {
                let entries = map.into_iter();
                FormValue::Map(entries.map(|(key, node)| (key, node.finish())).collect())
            }
            Self::List(list) => FormValue::List(list.items.into_iter().map(Self::finish).collect()),
        }
    }
}
